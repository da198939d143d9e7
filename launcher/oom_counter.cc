// SPDX-License-Identifier: Apache-2.0
#include "launcher/oom_counter.h"

#include <unistd.h>

#include <fstream>
#include <vector>

#include "base/text.h"

namespace muster::launcher {
namespace {

constexpr std::string_view kCgroup = "/sys/fs/cgroup";

// Files that may have the counter, in order of preference. In a container the path in /proc/self/cgroup may be the
// host's, which is not mounted here. Then the root of the mount is this process's cgroup.
std::vector<std::string> Candidates(const std::string& root) {
  std::vector<std::string> v1;
  std::vector<std::string> v2;
  std::ifstream lines(root + "/proc/self/cgroup");
  for (std::string line; std::getline(lines, line);) {
    size_t first = line.find(':');
    size_t second = first == std::string::npos ? first : line.find(':', first + 1);
    if (second == std::string::npos) continue;
    std::string_view controllers = std::string_view(line).substr(first + 1, second - first - 1);
    std::string path = line.substr(second + 1);
    if (path == "/") path.clear();
    if (controllers.empty()) {
      for (const std::string& at : {path, std::string()}) {
        v2.push_back(fmt::format("{}{}{}/memory.events", root, kCgroup, at));
      }
    }
    for (std::string_view controller : Split(controllers, ',')) {
      if (controller != "memory") continue;
      for (const std::string& at : {path, std::string()}) {
        v1.push_back(fmt::format("{}{}/memory{}/memory.oom_control", root, kCgroup, at));
      }
    }
  }
  // A hybrid host has both v1 and v2; memory then belongs to v1.
  v1.insert(v1.end(), v2.begin(), v2.end());
  return v1;
}

// "": there is none.
std::string FileOf(const std::string& root) {
  for (std::string& candidate : Candidates(root)) {
    if (access(candidate.c_str(), R_OK) == 0) return std::move(candidate);
  }
  return "";
}

const std::string& OwnFile() {
  static const std::string file = FileOf("");
  return file;
}

}  // namespace

OomCounter::OomCounter(const std::string& root) : file_(root.empty() ? OwnFile() : FileOf(root)) {}

std::optional<int64_t> OomCounter::Read() const {
  if (file_.empty()) return std::nullopt;
  std::ifstream lines(file_);
  for (std::string line; std::getline(lines, line);) {
    if (line.starts_with("oom_kill ")) return ParseInt(Strip(std::string_view(line).substr(9)));
  }
  return std::nullopt;
}

}  // namespace muster::launcher

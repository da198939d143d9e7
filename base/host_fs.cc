// SPDX-License-Identifier: Apache-2.0
#include "base/host_fs.h"

#include <dirent.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdlib>

#include "base/text.h"

namespace muster {
namespace {

constexpr size_t kMostBytes = 1 << 20;
constexpr int64_t kMostCpus = 1 << 16;

}  // namespace

std::optional<std::string> HostFs::Read(std::string_view path) const {
  int file = open(Rooted(path).c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK);
  if (file < 0) return std::nullopt;
  std::string content;
  char buffer[16384];
  ssize_t got = 0;
  while (content.size() < kMostBytes) {
    got = read(file, buffer, sizeof buffer);
    if (got < 0 && errno == EINTR) continue;
    if (got <= 0) break;
    content.append(buffer, static_cast<size_t>(got));
  }
  close(file);
  if (got < 0) return std::nullopt;
  return content;
}

std::optional<std::string> HostFs::ReadLine(std::string_view path) const {
  auto content = Read(path);
  if (!content) return std::nullopt;
  std::string line(Strip(*content));
  if (line.empty()) return std::nullopt;
  return line;
}

bool HostFs::Exists(std::string_view path) const { return access(Rooted(path).c_str(), F_OK) == 0; }

std::vector<std::string> HostFs::List(std::string_view folder) const {
  std::vector<std::string> names;
  DIR* open_folder = opendir(Rooted(folder).c_str());
  if (open_folder == nullptr) return names;
  while (const dirent* entry = readdir(open_folder)) {
    std::string_view name = entry->d_name;
    if (name != "." && name != "..") names.emplace_back(name);
  }
  closedir(open_folder);
  std::sort(names.begin(), names.end());
  return names;
}

bool HostFs::IsExecutable(std::string_view path) const {
  struct stat facts {};
  std::string rooted = Rooted(path);
  return stat(rooted.c_str(), &facts) == 0 && S_ISREG(facts.st_mode) && access(rooted.c_str(), X_OK) == 0;
}

std::optional<std::string> HostFs::RealPath(std::string_view path) const {
  auto real = [](const std::string& name) -> std::optional<std::string> {
    char* found = realpath(name.c_str(), nullptr);
    if (found == nullptr) return std::nullopt;
    std::string copy = found;
    free(found);
    return copy;
  };
  auto found = real(Rooted(path));
  if (!found || root_.empty()) return found;
  const std::string root = real(root_).value_or(root_);
  return found->starts_with(root + "/") ? found->substr(root.size()) : *found;
}

std::optional<std::pair<uint64_t, uint64_t>> HostFs::Identity(std::string_view path) const {
  struct stat facts {};
  if (stat(Rooted(path).c_str(), &facts) != 0) return std::nullopt;
  return std::pair<uint64_t, uint64_t>(facts.st_dev, facts.st_ino);
}

std::vector<int> ParseCpuList(std::string_view text) {
  std::vector<int> cpus;
  for (std::string_view part : Split(Strip(text), ',')) {
    size_t dash = part.find('-');
    auto first = ParseInt(part.substr(0, dash));
    auto last = dash == std::string_view::npos ? first : ParseInt(part.substr(dash + 1));
    if (!first || !last || *first < 0 || *last >= kMostCpus) continue;
    for (int64_t cpu = *first; cpu <= *last; ++cpu) cpus.push_back(static_cast<int>(cpu));
  }
  return cpus;
}

std::string FormatCpuList(const std::vector<int>& sorted) {
  std::vector<std::string> ranges;
  for (size_t at = 0; at < sorted.size();) {
    size_t end = at;
    while (end + 1 < sorted.size() && sorted[end + 1] == sorted[end] + 1) ++end;
    ranges.push_back(end == at ? fmt::format("{}", sorted[at]) : fmt::format("{}-{}", sorted[at], sorted[end]));
    at = end + 1;
  }
  return Join(ranges, ",");
}

}  // namespace muster

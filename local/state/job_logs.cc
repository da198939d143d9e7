// SPDX-License-Identifier: Apache-2.0
#include "local/state/job_logs.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <set>
#include <tuple>

#include "base/descriptors.h"
#include "base/folder_names.h"
#include "base/text.h"
#include "local/state/rank_marks.h"

namespace muster::local {
namespace {

constexpr std::string_view kEnding = ".log";

std::vector<std::string> Sorted(const std::string& folder) {
  std::vector<std::string> names = NamesIn(AT_FDCWD, folder, folder).value_or(std::vector<std::string>());
  std::sort(names.begin(), names.end());
  return names;
}

void AddPod(const std::string& folder, const PodRecord& pod, const std::string& mark, std::vector<LogSource>* sources) {
  const std::string logs = fmt::format("{}/pods/{}/logs", folder, pod.name);
  std::vector<std::tuple<size_t, LogName, std::string>> found;
  for (const std::string& file : Sorted(logs)) {
    const auto name = ReadLogName(file);
    if (!name) continue;
    const auto place = std::find(pod.containers.begin(), pod.containers.end(), name->container);
    found.emplace_back(place - pod.containers.begin(), *name, file);
  }
  std::sort(found.begin(), found.end());
  for (const auto& [place, name, file] : found) {
    sources->push_back(
        {.path = fmt::format("{}/{}", logs, file), .prefix = fmt::format("[{}] ", pod.host), .mark = mark});
  }
}

}  // namespace

bool LogChoice::Takes(const PodRecord& pod) const {
  if (node && pod.node_rank != *node) return false;
  return !rank || pod.marks_ranks || pod.node_rank == *rank;
}

std::vector<LogSource> LogSources(const std::string& folder, const RunRecord& record, const LogChoice& choice) {
  std::vector<LogSource> sources;
  std::set<std::string> known;
  for (const PodRecord& pod : record.pods) {
    if (!known.insert(pod.name).second || !choice.Takes(pod)) continue;
    AddPod(folder, pod, choice.rank && pod.marks_ranks ? RankMark(*choice.rank) : "", &sources);
  }
  if (choice.rank || choice.node) return sources;
  for (const std::string& name : Sorted(folder + "/pods")) {
    if (!known.contains(name)) AddPod(folder, {.name = name, .host = name}, "", &sources);
  }
  return sources;
}

std::optional<LogName> ReadLogName(std::string_view file) {
  if (!file.ends_with(kEnding)) return std::nullopt;
  file.remove_suffix(kEnding.size());
  const size_t dot = file.rfind('.');
  if (dot == std::string_view::npos) return LogName{.container = std::string(file)};
  const auto number = ParseInt(file.substr(dot + 1));
  if (!number || *number <= 0) return std::nullopt;
  return LogName{.container = std::string(file.substr(0, dot)), .number = *number};
}

std::string NextLog(const std::string& folder, const std::string& container) {
  std::string path = fmt::format("{}/{}.log", folder, container);
  for (int number = 1; access(path.c_str(), F_OK) == 0; ++number) {
    path = fmt::format("{}/{}.{}.log", folder, container, number);
  }
  return path;
}

std::string LogReader::Read(const LogSource& source, bool all) {
  const Descriptor file(open(source.path.c_str(), O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK));
  struct stat facts {};
  if (!file.ok() || fstat(file.get(), &facts) != 0 || !S_ISREG(facts.st_mode)) return "";
  Place& place = places_[source.path];
  if (facts.st_size < place.offset) place = {};
  std::string given;
  const auto take = [&](std::string_view line) {
    if (!line.starts_with(source.mark)) return;
    line.remove_prefix(source.mark.size());
    given += fmt::format("{}{}\n", source.prefix, line);
  };
  std::string bytes(kMostAtOnce, '\0');
  while (given.empty()) {
    const ssize_t count = pread(file.get(), bytes.data(), bytes.size(), place.offset);
    if (count <= 0) break;
    place.offset += count;
    place.open.append(bytes, 0, static_cast<size_t>(count));
    size_t begins = 0;
    for (size_t ends; (ends = place.open.find('\n', begins)) != std::string::npos; begins = ends + 1) {
      take(std::string_view(place.open).substr(begins, ends - begins));
    }
    place.open.erase(0, begins);
    // Bounds the memory for a line without a line feed.
    if (place.open.size() > kMostAtOnce) {
      take(place.open);
      place.open.clear();
    }
  }
  if (given.empty() && all && !place.open.empty()) {
    take(place.open);
    place.open.clear();
  }
  return given;
}

}  // namespace muster::local

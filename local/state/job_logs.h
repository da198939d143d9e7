// SPDX-License-Identifier: Apache-2.0
// Reads the logs of a job's containers line by line, with the pods' prefixes, also while they grow. For one thread.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/status.h"
#include "local/state/run_record.h"

namespace muster::local {

struct LogChoice {
  std::optional<int> rank, node;  // if set: only lines of that rank, or of that node
  bool Takes(const PodRecord& pod) const;
};

struct LogSource {
  std::string path, prefix;
  std::string mark;  // only lines that begin with it are shown, without it; empty: all
  bool operator==(const LogSource&) const = default;
};

// In the order of the record: one pod after the other, and in a pod one container after the other. Pods that the record
// does not have come last, and only without a choice. `folder`: that of the job, or of its previous run.
std::vector<LogSource> LogSources(const std::string& folder, const RunRecord& record, const LogChoice& choice);

// Orders a container's logs by their beginnings: "node.log", "node.1.log" and so on. nullopt: `file` is not a log.
struct LogName {
  std::string container;
  int64_t number = 0;
  auto operator<=>(const LogName&) const = default;
};
std::optional<LogName> ReadLogName(std::string_view file);
// The path of the first such name that is not yet in `folder`.
std::string NextLog(const std::string& folder, const std::string& container);

class LogReader {
 public:
  // The lines of `source` that earlier calls have not returned, each with its line feed. A line without a line feed is
  // held back until its line feed comes, unless `all`. A file that has become shorter is read from its beginning.
  // Empty: nothing new, or the file is gone. At most about kMostAtOnce bytes: call again until it returns nothing.
  std::string Read(const LogSource& source, bool all);

 private:
  struct Place {
    int64_t offset = 0;
    std::string open;  // a line that has not ended
  };
  std::map<std::string, Place> places_;
};

inline constexpr size_t kMostAtOnce = 1 << 20;

}  // namespace muster::local

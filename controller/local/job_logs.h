// What the containers of a job have written, line by line, with their pods' prefixes; once, or as it grows. For one
// thread.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/status.h"
#include "controller/local/run_record.h"

namespace muster::controller {

struct LogChoice {
  std::optional<int> rank, node;  // of that rank alone, of that node alone
  bool Takes(const PodRecord& pod) const;
};

struct LogSource {
  std::string path, prefix;
  std::string mark;  // lines that begin with it are meant, and shown without it; empty: all
  bool operator==(const LogSource&) const = default;
};

// In the order of the record: a pod after the other, and in it a container after the other. Those that the record does
// not have come last, unless there is a choice. `folder`: the job's, or that of the run before it.
std::vector<LogSource> LogSources(const std::string& folder, const RunRecord& record, const LogChoice& choice);

// The order in which files of a container began: "node.log", "node.1.log" ..; nothing: that is no log.
struct LogName {
  std::string container;
  int64_t number = 0;
  auto operator<=>(const LogName&) const = default;
};
std::optional<LogName> ReadLogName(std::string_view file);
// The first of them that is not in `folder`.
std::string NextLog(const std::string& folder, const std::string& container);

class LogReader {
 public:
  // The lines that `source` has beyond those that were given before, each with its line feed. What has no line feed yet
  // waits for it, unless `all`. One that has become shorter is read from its beginning. Empty: nothing new, or the file
  // is gone. At most about kMostAtOnce bytes: call again until it is empty.
  std::string Read(const LogSource& source, bool all);

 private:
  struct Place {
    int64_t offset = 0;
    std::string open;  // a line that has not ended
  };
  std::map<std::string, Place> places_;
};

inline constexpr size_t kMostAtOnce = 1 << 20;

}  // namespace muster::controller

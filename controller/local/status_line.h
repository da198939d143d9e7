// One line for a terminal: where a run is now. Pure; outside bytes.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "controller/local/local_job.h"
#include "controller/local/run_record.h"

namespace muster::controller {

struct StatusFacts {
  std::string name, state;  // empty: it begins
  int nodes = 0, nodes_ready = 0;
  std::optional<int> round;
  int ranks = 0, ranks_ready = 0;  // 0 ranks: no torchrun has said how many there are
  std::optional<int> restarts_left;
  std::string download;  // "12 MB of 50 MB, 3 of 10 files"; empty: none goes on
};

// Printable ASCII, shorter than `width`, which is that of the terminal; empty: there is no room for anything.
//   hello: Running | round 1 | 3 of 4 ranks ready | 2 restarts left
std::string StatusLine(const StatusFacts& facts, int width);

// What the agent and the initializer say of themselves, among other output: lines with this are theirs.
inline constexpr std::string_view kOwnLines = " I muster ";

// Follows a run by its record and by such lines.
class StatusView {
 public:
  // `line`: with kOwnLines, of that pod; a worker may have written it.
  void Take(const std::string& pod, std::string_view line);
  StatusFacts Facts(const LocalJobState& job, const std::vector<PodRecord>& pods) const;

 private:
  std::optional<int> round_;
  int ranks_ = 0;
  std::map<std::string, int> workers_;            // by pod
  std::map<std::string, std::string> downloads_;  // by pod
};

}  // namespace muster::controller

// SPDX-License-Identifier: Apache-2.0
// One line for a terminal that shows the state of a run. Pure; untrusted input.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "local/cluster/local_job.h"
#include "local/state/run_record.h"

namespace muster::local {

struct StatusFacts {
  std::string name, state;  // `state` is empty at the beginning
  int nodes = 0, nodes_ready = 0;
  std::optional<int> round;
  int ranks = 0, ranks_ready = 0;  // 0 ranks: no agent has printed how many there are
  std::optional<int> restarts_left;
  std::string download;  // "12 MB of 50 MB, 3 of 10 files"; empty: there is no download
};

// Printable ASCII, shorter than `width`, the terminal's. Empty: there is no room.
//   hello: Running | round 1 | 3 of 4 ranks ready | 2 restarts left
std::string StatusLine(const StatusFacts& facts, int width);

// Lines of output that contain this come from the agent or the initializer.
inline constexpr std::string_view kOwnLines = " I muster ";

// Follows a run by its record and by lines with kOwnLines.
class StatusView {
 public:
  // `line`: a line of output of `pod`. It contains kOwnLines, but may be a worker's.
  void Take(const std::string& pod, std::string_view line);
  StatusFacts Facts(const LocalJobState& job, const std::vector<PodRecord>& pods) const;

 private:
  std::optional<int> round_;
  int ranks_ = 0;
  std::map<std::string, int> workers_;            // by pod
  std::map<std::string, std::string> downloads_;  // by pod
};

}  // namespace muster::local

// SPDX-License-Identifier: Apache-2.0
// run.json: the record of one local run, which `muster ps` and others read. Pure; untrusted input.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/clock.h"
#include "base/status.h"

namespace muster::local {

inline constexpr size_t kMostPodRecords = 2048;  // the newest

struct PodRecord {
  std::string name, host;
  std::string address;                  // of its host: its agent listens there
  int node_rank = -1;                   // -1: it is not a node of the training
  std::vector<std::string> containers;  // in the order in which they start
  WallTime begun{};
  std::optional<WallTime> ended;
  bool ready = false;
  bool marks_ranks = false;      // each line of output of a rank begins with RankMark()
  std::optional<int> exit_code;  // once it has ended, if its program has run
  bool operator==(const PodRecord&) const = default;
};

// A drill that has happened (drills.h).
struct DrillRecord {
  WallTime time{};
  std::string order;  // the value of --kill
  std::string done;   // "SIGKILL to rank 3 on hello-node-0-1"
  bool operator==(const DrillRecord&) const = default;
};

struct RunRecord {
  std::string kind, name;
  std::vector<std::string> files;  // absolute
  std::string id;                  // different for each run; empty: of a version that had none
  int64_t pid = 0;                 // of the process that runs it
  int64_t pid_started = 0;         // of that process: clock ticks since the machine began, as /proc/PID/stat has it
  bool detached = false;
  WallTime begun{};
  std::optional<WallTime> ended;
  std::string state, message;  // from the job's status
  int restarts = 0, budget = 0;
  int exit_code = 0;                // once it has ended
  std::vector<PodRecord> pods;      // in the order in which they began
  std::vector<DrillRecord> drills;  // in the order in which they happened
  bool operator==(const RunRecord&) const = default;
};

// InvalidArgument: says which field is wrong. Each name of a pod or container in the result is one component of a path.
// Unknown fields are skipped. So are all but the newest kMostPodRecords pods.
StatusOr<RunRecord> ParseRunRecord(std::string_view text);
std::string ToJson(const RunRecord& record);

}  // namespace muster::local

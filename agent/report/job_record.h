// SPDX-License-Identifier: Apache-2.0
// What run.json of `muster local` says about a job, as far as its page and `muster top` show it. Pure; untrusted input.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "base/status.h"

namespace muster::agent {

// A drill (--kill) that has happened.
struct JobDrill {
  int64_t unix_ms = 0;
  std::string order;  // the value of the flag
  std::string done;   // "SIGKILL to rank 3 on hello-node-0-1"
};

struct JobPod {
  std::string name, host;
  std::string address;  // where its agent listens; empty: of a version that did not say it
  int node_rank = -1;   // -1: it is not a node of the training
  bool ended = false;
};

struct JobRecord {
  std::string kind, name;
  int restarts = 0, max_restarts = 0;  // wherever they happened: in the pods, or by new pods
  std::string state;                   // from the job's status
  bool ended = false;
  std::vector<JobPod> pods;      // the newest 2048, in the order in which they began
  std::vector<JobDrill> drills;  // the newest 256, in the order in which they happened
};

// InvalidArgument: says which field is wrong. Unknown fields are skipped.
StatusOr<JobRecord> ParseJobRecord(std::string_view json);

}  // namespace muster::agent

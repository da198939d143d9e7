// What run.json of `muster local` says about a job, as far as its page shows it. Pure; untrusted input.
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

struct JobRecord {
  std::string kind, name;
  int restarts = 0, max_restarts = 0;  // wherever they happened: in the pods, or by new pods
  std::vector<JobDrill> drills;        // the newest 256, in the order in which they happened
};

// InvalidArgument: says which field is wrong. Unknown fields are skipped.
StatusOr<JobRecord> ParseJobRecord(std::string_view json);

}  // namespace muster::agent

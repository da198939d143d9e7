// SPDX-License-Identifier: Apache-2.0
// Finds a worker of torchrun by what its agent has recorded (docs/attempt-json.md). Untrusted input: a record that
// cannot be read counts as none.
#pragma once

#include <sys/types.h>

#include <optional>
#include <string>

namespace muster::local {

struct RecordedWorker {
  pid_t pid = 0;  // in its agent's PID namespace
  int local_rank = 0;
};

// The worker of `rank` in the attempt that began last. `attempts`: the folder of a pod's records (job_folders.h).
// nullopt: no attempt has begun, or that one has no such worker. The worker may have ended.
std::optional<RecordedWorker> RecordedRank(const std::string& attempts, int rank);

}  // namespace muster::local

// SPDX-License-Identifier: Apache-2.0
// The processes of one run of `muster local`, also after it was killed. Each is started with RunMark() in its
// environment; one that was given another environment by its parent is not found.
#pragma once

#include <sys/types.h>

#include <string>
#include <vector>

#include "base/status.h"

namespace muster::local {

// "MUSTER_LOCAL_RUN=<run>". `run`: the ID of a run, different for each (RunRecord::id).
std::string RunMark(const std::string& run);

// An empty `run` has none.
std::vector<pid_t> ProcessesOfRun(const std::string& run);

// Kills them (SIGKILL) and waits for their end, 10 s at most. Unavailable: some are left, stuck in the kernel or
// another user's; names them. Blocking.
Status KillRun(const std::string& run);

}  // namespace muster::local

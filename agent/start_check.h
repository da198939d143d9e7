// SPDX-License-Identifier: Apache-2.0
// Checks what a start needs before any other node waits for this one, and gives the exit code of a start that failed.
#pragma once

#include <functional>

#include "agent/workers/run_options.h"
#include "base/status.h"

namespace muster::agent {

// For workers wired as torch: checks the script or command, python, numactl and, with --virtual-local-rank, a GPU for
// each. Errors: NotFound, PermissionDenied, FailedPrecondition; StartExitCode() gives their codes.
Status CheckStart(const RunOptions& options);

// 127 for NotFound, 126 for PermissionDenied, 78 for FailedPrecondition and InvalidArgument: no restart changes these.
// Else 204: this machine lacks descriptors, processes, memory or disk space; another one may have them.
int StartExitCode(const Status& error);

// The code of an agent that cannot get a port, file or address of its settings: 78, or 204 for ResourceExhausted.
int RefusalExitCode(const Status& error);

// Runs `begin` and returns its exit code. Asio throws if it cannot make a loop, the standard library if it cannot start
// a thread, both before there is a worker: returns that error, with the remedy. Internal: any other std::system_error.
StatusOr<int> RunOrSay(const std::function<int()>& begin);

}  // namespace muster::agent

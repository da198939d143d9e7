// What a start needs, looked at before anybody is kept waiting, and the exit code of a start that failed.
#pragma once

#include "agent/run_options.h"
#include "base/status.h"

namespace muster::agent {

// Workers wired as torch: the script or command, python, numactl, a GPU for each. NotFound, PermissionDenied,
// FailedPrecondition: as StartExitCode() reads them.
Status CheckStart(const RunOptions& options);

// 127 for NotFound, 126 for PermissionDenied, 78 for FailedPrecondition: no restart changes these; else 1.
int StartExitCode(const Status& error);

}  // namespace muster::agent

// What a start needs, looked at before anybody is kept waiting, and the exit code of a start that failed.
#pragma once

#include <functional>

#include "agent/torch/run_options.h"
#include "base/status.h"

namespace muster::agent {

// Workers wired as torch: the script or command, python, numactl, a GPU for each. NotFound, PermissionDenied,
// FailedPrecondition: as StartExitCode() reads them.
Status CheckStart(const RunOptions& options);

// 127 for NotFound, 126 for PermissionDenied, 78 for FailedPrecondition and InvalidArgument: no restart changes these.
// Else 204: this machine lacks what a start needs (descriptors, processes, memory, room), another one may have it.
int StartExitCode(const Status& error);

// The code of an agent that cannot have what its settings name (a port, a file, an address): 78, or 204 for
// ResourceExhausted, as above.
int RefusalExitCode(const Status& error);

// What `begin` gives, an exit code. Asio throws where a loop cannot be had, the standard library where a thread cannot,
// before there is a worker: then the error of that, with the remedy. Internal: any other exception of the library.
StatusOr<int> RunOrSay(const std::function<int()>& begin);

}  // namespace muster::agent

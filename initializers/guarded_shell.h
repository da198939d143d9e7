// A command for `sh` that does not outlive this process, and nothing of it does.
//
//   this process -> a guard, which leads a process group of its own -> sh -c COMMAND -> what that starts
//
// The guard ends with the shell's code. Where this process ends first, were it by SIGKILL, the guard kills the group;
// until then it holds what is open here, and so the lock of the lease (lease.h): nobody begins while something of the
// command still runs. What has left the group (setsid) is on its own.
#pragma once

#include <sys/types.h>

#include <string>
#include <vector>

#include "base/status.h"

namespace muster::initializers {

// The guard's pid, which is its group's as well: a signal to the group reaches all but the guard, except for SIGKILL.
// Its exit code is the shell's, 128 + n for a signal; somebody has to wait for it. `environment`: "KEY=VALUE",
// complete. From the thread that lives as long as this process does. An error: there is no shell.
StatusOr<pid_t> StartGuardedShell(const std::string& command, const std::vector<std::string>& environment);

}  // namespace muster::initializers

// SPDX-License-Identifier: Apache-2.0
// Makes a process end with an exit code, as if it had called exit_group(2) itself. It traces the process for an instant
// by ptrace(2). No exit handler of the process runs. Loop thread only.
#pragma once

#include <sys/types.h>

#include <functional>

#include "base/status.h"
#include "launcher/reaper.h"

namespace muster::local {

// `pid`: a descendant that no process traces. `done` is called on the loop, once:
// with OK when the process is about to end, else with an error of ptrace(2); never if the process ends before, or never
// stops (stuck in the kernel). Errors at once: the process may not be traced; names the remedy.
Status ForceExit(launcher::Reaper& reaper, pid_t pid, int code, std::function<void(Status)> done);

}  // namespace muster::local

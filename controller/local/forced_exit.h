// Makes a process end with an exit code, as if it had called exit_group(2) itself: by ptrace(2), for an instant. No
// handler of its own runs. Loop thread only.
#pragma once

#include <sys/types.h>

#include <functional>

#include "base/status.h"
#include "launcher/reaper.h"

namespace muster::controller {

// `pid`: a descendant of this process that nobody traces, and no child of it that is watched. `done` is called once, on
// the loop, with OK when it is about to end; never where it ends before, or never stops (stuck in the kernel). Errors
// at once: it may not be traced; names the remedy.
Status ForceExit(launcher::Reaper& reaper, pid_t pid, int code, std::function<void(Status)> done);

}  // namespace muster::controller

// A process that calls exit_group(2) next, whatever it was about to do. One file for each processor.
#pragma once

#include <sys/types.h>

#include "base/status.h"

namespace muster::controller {

// `pid`: one that we trace, in a stop. Its next instruction becomes the call, in its own copy of the page. Errors: the
// kernel refuses, or this processor is none that is known here.
Status CallExitNext(pid_t pid, int code);

}  // namespace muster::controller

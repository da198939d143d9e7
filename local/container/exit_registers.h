// SPDX-License-Identifier: Apache-2.0
// Makes a traced process call exit_group(2) next, whatever it was about to do. One .cc file for each architecture.
#pragma once

#include <sys/types.h>

#include "base/status.h"

namespace muster::local {

// `pid`: a process that this process traces, and that is stopped. The instruction that it runs next is replaced by a
// system call, in its private copy of the page. Errors: ptrace(2) fails, or this architecture is not supported.
Status CallExitNext(pid_t pid, int code);

}  // namespace muster::local

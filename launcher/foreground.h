// SPDX-License-Identifier: Apache-2.0
// Lends the terminal's foreground to a worker, so that job control works if a shell started this process as a job.
//
// A worker in its own process group has the foreground (process.h) and so receives Ctrl-C and Ctrl-Z. This process's
// group takes the foreground back when the worker has ended, for the next reader of the terminal, and when the worker
// was stopped, so that the shell can take it. Source: the C library's manual, "Implementing a Shell". tini and
// dumb-init do not take it back: a script that continues after them is in the background of its terminal.
//
// The terminal is the one on stdin. This process must ignore SIGTTOU, since it makes these calls from the background.
#pragma once

#include <sys/types.h>

namespace muster::launcher {

// Whether stdin is a terminal and this process's group has its foreground.
bool HasForeground();

// Gives the foreground to this process's group if `group` has it. Does nothing if the terminal is gone.
void TakeForeground(pid_t group);

// Gives the foreground to `group` if this process's group has it. True if `group` has it now.
bool GiveForeground(pid_t group);

// SIGTSTP, SIGTTIN and SIGTTOU: the signals by which a terminal stops processes.
bool IsStopOfTerminal(int signal);

// Stops this process's group, as the worker was stopped by `signal`. Returns false and stops nothing if no process
// would continue it: its parent is not a shell with job control (docker run -it), or SIGTSTP is ignored.
bool StopWithTheWorker(int signal);

}  // namespace muster::launcher

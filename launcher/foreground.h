// The terminal's foreground, lent to a worker: what a shell that started us as a job sees and expects.
//
// A worker in a process group of its own has the foreground (process.h), so that Ctrl-C and Ctrl-Z are its own. Ours
// has it again when the worker has ended, for who reads next; and when it was stopped, so that the shell can have it.
// Source: the C library's manual, "Implementing a Shell"; tini and dumb-init take nothing back, which leaves a script
// that goes on behind its terminal.
//
// The terminal is the one on stdin. SIGTTOU must be ignored by us: all of this is done from the background.
#pragma once

#include <sys/types.h>

namespace muster::launcher {

// Ours has it, in a terminal.
bool HasForeground();

// To our process group, where `group` has it. A terminal that is gone has nothing to give.
void TakeForeground(pid_t group);

// To `group`, where ours has it. True: `group` has it now.
bool GiveForeground(pid_t group);

// SIGTSTP, SIGTTIN and SIGTTOU: what a terminal stops with.
bool IsStopOfTerminal(int signal);

// Stops our own process group as the worker was stopped. False, and nothing is stopped, where nobody would continue us:
// no shell with job control is our parent (docker run -it), or Ctrl-Z is to be ignored.
bool StopWithTheWorker(int signal);

}  // namespace muster::launcher

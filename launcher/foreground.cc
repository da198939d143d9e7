// SPDX-License-Identifier: Apache-2.0
#include "launcher/foreground.h"

#include <signal.h>
#include <unistd.h>

namespace muster::launcher {

bool HasForeground() { return tcgetpgrp(STDIN_FILENO) == getpgrp(); }

void TakeForeground(pid_t group) {
  if (tcgetpgrp(STDIN_FILENO) == group) tcsetpgrp(STDIN_FILENO, getpgrp());
}

bool GiveForeground(pid_t group) {
  if (HasForeground()) tcsetpgrp(STDIN_FILENO, group);
  return tcgetpgrp(STDIN_FILENO) == group;
}

bool IsStopOfTerminal(int signal) { return signal == SIGTSTP || signal == SIGTTIN || signal == SIGTTOU; }

bool StopWithTheWorker(int signal) {
  // The kernel's rule for orphaned process groups: the leader's parent must be in another group of the same session.
  const pid_t parent = getppid();
  if (getsid(0) == getpid() || getsid(parent) != getsid(0) || getpgid(parent) == getpgrp()) return false;
  struct sigaction disposition {};
  if (sigaction(SIGTSTP, nullptr, &disposition) == 0 && disposition.sa_handler == SIG_IGN) return false;
  return kill(0, signal == SIGTTOU ? SIGSTOP : signal) == 0;  // this process ignores SIGTTOU
}

}  // namespace muster::launcher

// SPDX-License-Identifier: Apache-2.0
// A command that does not outlive this process, nor do its children: that of --then, or one that prints credentials.
//
//   this process -> a guard, which leads its own process group -> the command -> the command's children
//
// The guard exits with the command's code. If this process ends first, even by SIGKILL, the guard kills the group. It
// does not kill processes that have left the group (setsid), nor those that the command leaves behind when it ends.
#pragma once

#include <sys/types.h>

#include <string>
#include <vector>

#include "base/descriptors.h"
#include "base/status.h"

namespace muster {

struct GuardedCommand {
  std::vector<std::string> words;        // the first is looked up in this process's PATH if it has no '/'
  std::vector<std::string> environment;  // "KEY=VALUE", complete
  // Descriptors above 2 that become the command's 0, 1 and 2; borrowed. -1: inherited from this process.
  int in = -1;
  int out = -1;
  int err = -1;
  // true: the guard keeps this process's descriptors open, and so its file locks, while the command runs. false: the
  // guard closes them, so that a close in this process takes effect at once.
  bool holds_lease = true;
};

struct GuardedProcess {
  pid_t pid = -1;    // of the guard and its group. Of the signals to the group, only SIGKILL ends the guard
  Descriptor ended;  // readable (end of file) once the guard has ended
};

// Call it on a thread that lives as long as this process: the guard watches that thread (PR_SET_PDEATHSIG). Call
// CollectGuarded() later. Errors name the command: it cannot be executed, or no process, pipe or descriptor is left.
StatusOr<GuardedProcess> StartGuarded(const GuardedCommand& command);

// Blocks until `pid` ends and reaps it; call it once. Returns the exit code of the command, 128 + n for a signal.
int CollectGuarded(pid_t pid);

}  // namespace muster

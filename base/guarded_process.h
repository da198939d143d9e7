// A process that does not outlive this one, and nothing of it does: what --then names, what is asked for credentials.
//
//   this process -> a guard, which leads a process group of its own -> the command -> what that starts
//
// The guard ends with the command's code. Where this process ends first, were it by SIGKILL, the guard kills the group.
// What has left the group (setsid) is on its own, and so is what the command leaves behind when it ends.
#pragma once

#include <sys/types.h>

#include <string>
#include <vector>

#include "base/descriptors.h"
#include "base/status.h"

namespace muster {

struct GuardedCommand {
  std::vector<std::string> words;        // the first is looked up in our PATH if it has no '/'
  std::vector<std::string> environment;  // "KEY=VALUE", complete
  // Descriptors above 2 that become 0, 1 and 2; borrowed. -1: the one this process has.
  int in = -1;
  int out = -1;
  int err = -1;
  // The guard holds what is open here, and so a lock that this process has: nobody gets it while something of the
  // command still runs. Else it holds nothing: what we close is closed.
  bool holds_lease = true;
};

struct GuardedProcess {
  pid_t pid = -1;  // the guard's, and its group's: a signal to the group reaches all but the guard, except for SIGKILL
  Descriptor ended;  // readable, at its end, once the guard has ended
};

// Somebody has to collect it. From the thread that lives as long as this process does. An error, which names the
// command: it cannot be executed, or no process, pipe or descriptor is left.
StatusOr<GuardedProcess> StartGuarded(const GuardedCommand& command);

// Waits for the end of `pid`, once: the exit code of the command, 128 + n for a signal.
int CollectGuarded(pid_t pid);

}  // namespace muster

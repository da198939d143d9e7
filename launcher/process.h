// SPDX-License-Identifier: Apache-2.0
// Starts one process in its own session or process group. It inherits only the descriptors that ProcessSpec names.
//
// Uses vfork(2), and no call that is younger than Linux 3.4. The child, before exec:
//   - calls setsid (or setpgid, see ProcessSpec), sets stdio and the working directory
//   - sets PDEATHSIG=SIGKILL. The signal comes when the calling thread ends, so call from a thread that lives as long
//     as the agent. If the parent has died already, the child exits
//   - resets every signal's disposition to its default, empties the mask, closes descriptors above 2 that are not kept
// StartProcess does not wait for the end of the process; the reaper does.
#pragma once

#include <sys/types.h>

#include <string>
#include <vector>

#include "base/status.h"

namespace muster::launcher {

struct ProcessSpec {
  std::vector<std::string> argv;         // argv[0]: looked up in PATH of `environment` if it has no '/'
  std::vector<std::string> environment;  // "KEY=VALUE", complete
  std::string working_directory;         // empty: this process's
  // False: only its own process group, in this process's session, so that it keeps the controlling terminal.
  bool own_session = true;
  bool foreground = false;  // if !own_session: make it the foreground group of the terminal on its stdin
  // Descriptors that become the process's 0, 1 and 2; borrowed. -1: inherited from this process.
  int in = -1;
  int out = -1;
  int err = -1;
  std::vector<int> kept;  // descriptors above 2 that the process inherits; all others are closed
};

// Finds the file of `command` like execvp: `command` itself if it has a '/', else the first executable in PATH of
// `environment` ("/usr/local/bin:/bin:/usr/bin" if it has no PATH). Relative folders are relative to
// `working_directory`. Errors: NotFound, or PermissionDenied if the name exists but is not an executable file.
StatusOr<std::string> FindExecutable(const std::string& command, const std::vector<std::string>& environment,
                                     const std::string& working_directory);

// Starts the process and returns its pid after a successful exec. Errors, all of which name the command:
//   NotFound            no such command, or its interpreter is missing (shells end with 127)
//   PermissionDenied    it exists and cannot be executed: mode, a directory, exec format error, arguments and
//                       environment too long (shells end with 126)
//   FailedPrecondition  the working directory cannot be entered; a system call is missing or forbidden
//   ResourceExhausted   limit of processes, descriptors or memory reached
StatusOr<pid_t> StartProcess(const ProcessSpec& spec);

}  // namespace muster::launcher

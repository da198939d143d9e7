// Starts one process the way a worker wants it: own session or process group, nothing of ours left in it but what is
// named here.
//
// By vfork(2), and by no call that is younger than Linux 3.4. In the child, before exec:
//   setsid (or setpgid, see ProcessSpec); PDEATHSIG=SIGKILL (tied to the calling thread: start from the thread that
//   lives as long as the agent, and a parent that has died already is noticed); stdio; working directory; every
//   signal's disposition back to its default, the mask empty. Descriptors above 2 are closed.
// Nothing waits for the process: that is the reaper's business.
#pragma once

#include <sys/types.h>

#include <string>
#include <vector>

#include "base/status.h"

namespace muster::launcher {

struct ProcessSpec {
  std::vector<std::string> argv;         // argv[0]: looked up in PATH of `environment` if it has no '/'
  std::vector<std::string> environment;  // "KEY=VALUE", complete
  std::string working_directory;         // empty: ours
  // False: a process group of its own in our session, so that a terminal stays its controlling one.
  bool own_session = true;
  bool foreground = false;  // with a group of its own: it becomes the foreground group of the terminal on its stdin
  // Descriptors that become 0, 1 and 2; borrowed. -1: the one this process has.
  int in = -1;
  int out = -1;
  int err = -1;
  std::vector<int> kept;  // descriptors above 2 that stay what they are; all others are closed
};

// Where `command` is, as execvp would find it: itself if it has a '/', else the first executable in PATH of
// `environment`
// ("/usr/local/bin:/bin:/usr/bin" where it has none). Relative places count from `working_directory`.
// NotFound, or PermissionDenied where something by that name exists but is no executable file.
StatusOr<std::string> FindExecutable(const std::string& command, const std::vector<std::string>& environment,
                                     const std::string& working_directory);

// The pid of the new process, which has been exec'd. Errors, all naming the command:
//   NotFound            no such command, or its interpreter is missing (shells end with 127)
//   PermissionDenied    it exists and cannot be executed: mode, a directory, exec format error, arguments and
//                       environment too long (shells end with 126)
//   FailedPrecondition  the working directory cannot be entered; a system call is not there or not allowed
//   ResourceExhausted   limit of processes, descriptors or memory reached
StatusOr<pid_t> StartProcess(const ProcessSpec& spec);

}  // namespace muster::launcher

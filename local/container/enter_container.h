// SPDX-License-Identifier: Apache-2.0
// Runs a command inside a running container, for exec probes: `muster-local enter-container`, which is not for users.
//
// The command joins the container's mount, host name, IPC, network and PID namespaces by setns(2); those that the
// container shares with this process are skipped. Its environment is this process's; the working folder is an argument.
#pragma once

#include <sys/types.h>

#include <string>
#include <vector>

namespace muster::local {

inline constexpr char kEnterWord[] = "enter-container", kCgroupWord[] = "in-cgroup";

// The words that start `command` in the namespaces of the process `pid` of a container.
std::vector<std::string> EnterWords(pid_t pid, const std::string& working_directory,
                                    const std::vector<std::string>& command);

// The words to put before a program so that it starts in the cgroup `folder`; none if `folder` is empty.
std::vector<std::string> CgroupWords(const std::string& folder);

// Runs the words of EnterWords(); `arguments`: those behind kEnterWord. Returns the command's exit code, 128 + n for a
// signal. If the command cannot be started, prints the reason to stderr and ends this process by SIGKILL, which no end
// of the command causes. The command's process group ends with this process, and this process with its parent.
int EnterContainer(const std::vector<std::string>& arguments);

// Runs the words of CgroupWords(). Returns only if that fails, after printing the reason: an exit code.
int BecomeInCgroup(const std::vector<std::string>& arguments);

}  // namespace muster::local

// A command inside a container that runs, which is what an exec probe is: `muster-local enter-container`, not for
// users.
//
// It gets the container's files, host name, /dev/shm and network by setns(2), its environment and its working folder by
// the one who starts it, and sees the container's processes. Namespaces that the container shares with us are left out,
// so it also serves a container that has none of its own.
#pragma once

#include <sys/types.h>

#include <string>
#include <vector>

namespace muster::controller {

inline constexpr char kEnterWord[] = "enter-container", kCgroupWord[] = "in-cgroup";

// The words that start `command` beside the process `pid` of a container.
std::vector<std::string> EnterWords(pid_t pid, const std::string& working_directory,
                                    const std::vector<std::string>& command);

// The words before those of a program that starts in the cgroup `folder`; none where it is empty.
std::vector<std::string> CgroupWords(const std::string& folder);

// What EnterWords do; `arguments` are those behind kEnterWord. The command's exit code, 128 + n for a signal. Where it
// cannot be started the reason goes to stderr, and this process ends by SIGKILL, as no command's end makes it do. The
// command and what it has started end with this process, and that with its parent.
int EnterContainer(const std::vector<std::string>& arguments);

// What CgroupWords do. It returns only where it fails, and has said so then: an exit code.
int BecomeInCgroup(const std::vector<std::string>& arguments);

}  // namespace muster::controller

// A command inside a container that runs, which is what an exec probe is: `muster-local enter-container`, not for
// users.
//
// It gets the container's files, host name, /dev/shm and network by setns(2), its environment and its working folder by
// the one who starts it. Namespaces that the container shares with us are left out, so it also serves a container that
// has none of its own. Not the processes' one (CLONE_NEWPID), which containers share with this machine.
#pragma once

#include <sys/types.h>

#include <string>
#include <vector>

namespace muster::controller {

inline constexpr char kEnterWord[] = "enter-container";

// The words that start `command` beside the process `pid` of a container.
std::vector<std::string> EnterWords(pid_t pid, const std::string& working_directory,
                                    const std::vector<std::string>& command);

// What these words do; `arguments` are those behind kEnterWord. The command's exit code, 128 + n for a signal. Where it
// cannot be started the reason goes to stderr, and this process ends by SIGKILL, as no command's end makes it do. The
// command and what it has started end with this process, and that with its parent.
int EnterContainer(const std::vector<std::string>& arguments);

}  // namespace muster::controller

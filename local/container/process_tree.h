// Finds descendants of a process in /proc. Processes may end at any moment; those that have ended are left out.
#pragma once

#include <sys/types.h>

#include <string>
#include <vector>

namespace muster::local {

std::vector<pid_t> ChildrenOf(pid_t pid);

// The nearest descendant of `top` that was started with all of `entries` ("KEY=VALUE"); 0: there is none.
pid_t FindBelow(pid_t top, const std::vector<std::string>& entries);

}  // namespace muster::local

// Processes below others, as /proc has them. They may end at any moment: what is gone is left out.
#pragma once

#include <sys/types.h>

#include <string>
#include <vector>

namespace muster::controller {

std::vector<pid_t> ChildrenOf(pid_t pid);

// The process below `top` that is nearest to it and was started with each of `entries` ("KEY=VALUE"); 0: there is none.
pid_t FindBelow(pid_t top, const std::vector<std::string>& entries);

}  // namespace muster::controller

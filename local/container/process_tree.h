// SPDX-License-Identifier: Apache-2.0
// Finds descendants of a process in /proc. Processes may end at any moment; those that have ended are left out.
#pragma once

#include <sys/types.h>

#include <string>
#include <vector>

namespace muster::local {

std::vector<pid_t> ChildrenOf(pid_t pid);

// A process that is looked for.
struct Sought {
  std::vector<std::string> entries;  // it was started with all of these ("KEY=VALUE")
  pid_t inside = 0;                  // its pid in its own PID namespace; 0: any
};

// The nearest descendant of `top` that fits; 0: there is none.
pid_t FindBelow(pid_t top, const Sought& sought);

}  // namespace muster::local

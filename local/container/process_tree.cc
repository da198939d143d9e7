// SPDX-License-Identifier: Apache-2.0
#include "local/container/process_tree.h"

#include <deque>
#include <fstream>

#include "base/text.h"
#include "launcher/process_table.h"

namespace muster::local {
namespace {

// The pid of `pid` in its own PID namespace: the last one of NSpid, which Linux before 4.1 does not have.
pid_t PidInside(pid_t pid) {
  std::ifstream file(fmt::format("/proc/{}/status", pid));
  for (std::string line; std::getline(file, line);) {
    if (!line.starts_with("NSpid:")) continue;
    return static_cast<pid_t>(ParseInt(line.substr(line.rfind('\t') + 1)).value_or(0));
  }
  return pid;
}

}  // namespace

std::vector<pid_t> ChildrenOf(pid_t pid) {
  std::ifstream file(fmt::format("/proc/{0}/task/{0}/children", pid));
  std::vector<pid_t> children;
  for (pid_t child = 0; file >> child;) children.push_back(child);
  return children;
}

pid_t FindBelow(pid_t top, const Sought& sought) {
  for (std::deque<pid_t> open = {top}; !open.empty(); open.pop_front()) {
    for (const pid_t child : ChildrenOf(open.front())) {
      const bool numbered = sought.inside == 0 || sought.inside == PidInside(child);
      if (numbered && launcher::StartedWith(child, sought.entries) == launcher::Holds::kYes) return child;
      open.push_back(child);
    }
  }
  return 0;
}

}  // namespace muster::local

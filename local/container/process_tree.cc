#include "local/container/process_tree.h"

#include <deque>
#include <fstream>

#include "base/text.h"
#include "launcher/process_table.h"

namespace muster::local {

std::vector<pid_t> ChildrenOf(pid_t pid) {
  std::ifstream file(fmt::format("/proc/{0}/task/{0}/children", pid));
  std::vector<pid_t> children;
  for (pid_t child = 0; file >> child;) children.push_back(child);
  return children;
}

pid_t FindBelow(pid_t top, const std::vector<std::string>& entries) {
  for (std::deque<pid_t> open = {top}; !open.empty(); open.pop_front()) {
    for (const pid_t child : ChildrenOf(open.front())) {
      if (launcher::StartedWith(child, entries) == launcher::Holds::kYes) return child;
      open.push_back(child);
    }
  }
  return 0;
}

}  // namespace muster::local

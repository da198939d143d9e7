// SPDX-License-Identifier: Apache-2.0
// `muster stacks PID...`: prints what the processes of these trees are doing, thread by thread, from /proc.
#include <unistd.h>

#include <cerrno>

#include "agent/commands/arguments.h"
#include "agent/commands/commands.h"
#include "agent/probe/process_stacks.h"
#include "base/text.h"

namespace muster::agent {
namespace {

// Writes at once, without a buffer: reading from a process that is stuck may block for ever, and what came before it
// must be in the output.
void WriteOut(std::string_view text) {
  while (!text.empty()) {
    ssize_t n = write(STDOUT_FILENO, text.data(), text.size());
    if (n < 0 && errno == EINTR) continue;
    if (n <= 0) return;
    text.remove_prefix(static_cast<size_t>(n));
  }
}

}  // namespace

int StacksCommand(const Call& call) {
  Arguments arguments(
      "Print what processes and their descendants are doing: state, kernel stack and system call of each thread",
      "muster stacks");
  std::vector<pid_t> pids;
  arguments.Positives("PID", &pids, "processes to start from");
  if (auto end = arguments.Parse(call)) return *end;
  for (pid_t pid : pids) DescribeTree(HostFs(), pid, {}, WriteOut);
  return 0;
}

}  // namespace muster::agent

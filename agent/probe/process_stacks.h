// SPDX-License-Identifier: Apache-2.0
// What processes are doing, from /proc: state, kernel stack, wait channel and system call of every thread.
//
// `muster stacks` prints it, in a process of its own: reading the command line of a process that is stuck in the kernel
// may block for ever, and then only that helper waits. For this reason command lines come last.
//
// Everything is bounded; what could not be read says so (kernel stacks need CAP_SYS_ADMIN, the rest the same user).
#pragma once

#include <sys/types.h>

#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "base/host_fs.h"

namespace muster::agent {

struct StackLimits {
  size_t processes = 256;  // of one tree
  size_t threads = 512;    // of one process
  size_t file_bytes = 8 << 10;
};

// `root`, its descendants, and the other processes of its process group; `root` first, then by pid.
std::vector<pid_t> ProcessTree(const HostFs& fs, pid_t root);

// Describes the processes of that tree, piece by piece.
void DescribeTree(const HostFs& fs, pid_t root, const StackLimits& limits,
                  const std::function<void(std::string_view)>& write);

// Whether the process runs a Python interpreter, by its executable's name.
bool IsPython(pid_t pid);

}  // namespace muster::agent

// SPDX-License-Identifier: Apache-2.0
// A process, identified by its ID and its start time, since the ID alone may be reused. It is held by a pidfd, so a
// signal reaches no other process.
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <optional>

#include "base/clock.h"
#include "base/descriptors.h"
#include "base/status.h"

namespace muster::local {

// The start time in clock ticks since the machine's start, from /proc/PID/task/PID/stat; nullopt: the process has
// ended.
std::optional<int64_t> ProcessStart(pid_t pid);

class ProcessHandle {
 public:
  // NotFound: it has ended. FailedPrecondition: the system has no pidfds.
  static StatusOr<ProcessHandle> Open(pid_t pid, int64_t started);

  // NotFound: it has ended. PermissionDenied: it is another user's.
  Status Signal(int signal) const;
  int descriptor() const { return descriptor_.get(); }  // readable once it has ended
  // Blocks until it has ended. False: it had not by the deadline.
  bool AwaitEnd(TimePoint deadline) const;

 private:
  ProcessHandle(pid_t pid, Descriptor descriptor) : pid_(pid), descriptor_(std::move(descriptor)) {}

  pid_t pid_;
  Descriptor descriptor_;
};

}  // namespace muster::local

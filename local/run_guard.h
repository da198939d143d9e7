// SPDX-License-Identifier: Apache-2.0
// A second process that ends what a run leaves if its `muster local` is killed (SIGKILL): the run's processes, and the
// pods' volumes, with the copies of Secrets in them.
#pragma once

#include <sys/types.h>

#include <memory>
#include <string>

#include "base/descriptors.h"
#include "base/status.h"

namespace muster::local {

class RunGuard {
 public:
  // Forks; call it before other threads start. The guard has a session of its own, ignores signals that can be ignored,
  // and holds none of this process's descriptors but `pods`. `run`: as of left_processes.h. `pods`: borrowed, the open
  // folder whose volumes the guard removes, also after a new run has moved that folder; -1: the volumes stay. Errors:
  // there are no more processes or descriptors.
  static StatusOr<std::unique_ptr<RunGuard>> Begin(const std::string& run, int pods);
  ~RunGuard();  // ends the guard, which has nothing to do: the run has cleaned up itself
  RunGuard(const RunGuard&) = delete;
  RunGuard& operator=(const RunGuard&) = delete;

  pid_t pid() const { return pid_; }

 private:
  RunGuard(pid_t pid, Descriptor life) : pid_(pid), life_(std::move(life)) {}

  pid_t pid_;
  Descriptor life_;  // its end without a byte tells the guard that this process was killed
};

}  // namespace muster::local

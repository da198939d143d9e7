// SPDX-License-Identifier: Apache-2.0
// A command that continues in a background process. The first process waits until the command runs.
#pragma once

#include <sys/types.h>

#include <string>

#include "base/descriptors.h"
#include "base/status.h"

namespace muster::local {

class Background {
 public:
  // Forks. Call it before other threads start: only the calling thread is in the new process. That has a session of its
  // own, /dev/null as stdin, and the file `output`, truncated, as stdout and stderr. Errors: `output` cannot be
  // written, or there are no more processes or descriptors.
  static StatusOr<Background> Fork(const std::string& output);

  bool is_new() const { return pid_ == 0; }
  pid_t pid() const { return pid_; }  // in the first process: of the new process

  // In the new process, once. `started`: OK if the command runs, else why it does not.
  void ReportStart(const Status& started);
  // In the first process: waits for ReportStart(). Unavailable: ReportStart()'s error, or the new process ended without
  // ReportStart().
  Status Await();

 private:
  Background(pid_t pid, Descriptor word, std::string output)
      : pid_(pid), word_(std::move(word)), output_(std::move(output)) {}

  pid_t pid_;
  Descriptor word_;
  std::string output_;
};

}  // namespace muster::local

// A command that goes on in the background once it is known that it runs.
#pragma once

#include <sys/types.h>

#include <string>

#include "base/descriptors.h"
#include "base/status.h"

namespace muster::controller {

class Background {
 public:
  // Forks; nothing but this thread goes on in the new process, so before any other one is started. The new process has
  // a session of its own, nothing to read, and `output`, emptied, as stdout and stderr. Errors: `output` cannot be
  // written, no process or descriptor is left.
  static StatusOr<Background> Fork(const std::string& output);

  bool is_new() const { return pid_ == 0; }
  pid_t pid() const { return pid_; }  // in the first process: the new one's

  // In the new process, once: it runs, or why not.
  void Tell(const Status& started);
  // In the first one: waits for that word. Unavailable: why not, or that the new process ended without a word.
  Status Await();

 private:
  Background(pid_t pid, Descriptor word, std::string output)
      : pid_(pid), word_(std::move(word)), output_(std::move(output)) {}

  pid_t pid_;
  Descriptor word_;
  std::string output_;
};

}  // namespace muster::controller

// SPDX-License-Identifier: Apache-2.0
#include "local/container/forced_exit.h"

#include <sys/ptrace.h>

#include <cerrno>

#include "base/text.h"
#include "local/container/exit_registers.h"

namespace muster::local {

Status ForceExit(launcher::Reaper& reaper, pid_t pid, int code, std::function<void(Status)> done) {
  if (ptrace(PTRACE_SEIZE, pid, nullptr, nullptr) != 0) {
    Status status = ErrnoStatus(errno, fmt::format("ptrace: process {} cannot be traced", pid));
    if (errno != EPERM) return status;
    return absl::FailedPreconditionError(
        fmt::format("{}; a debugger traces it already, or kernel.yama.ptrace_scope or a seccomp profile forbids it",
                    Message(status)));
  }
  reaper.WatchTraced(pid, [pid, code, done = std::move(done)] {
    const Status set = CallExitNext(pid, code);
    ptrace(PTRACE_DETACH, pid, nullptr, nullptr);
    done(set);
  });
  if (ptrace(PTRACE_INTERRUPT, pid, nullptr, nullptr) != 0) return ErrnoStatus(errno, "ptrace: PTRACE_INTERRUPT");
  return absl::OkStatus();
}

}  // namespace muster::local

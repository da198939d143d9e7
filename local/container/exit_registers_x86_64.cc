// SPDX-License-Identifier: Apache-2.0
#include <sys/ptrace.h>
#include <sys/syscall.h>
#include <sys/user.h>

#include <cerrno>

#include "local/container/exit_registers.h"

namespace muster::local {
namespace {

constexpr long kCall = 0x050f;  // syscall
constexpr long kCallBits = 0xffff;

}  // namespace

Status CallExitNext(pid_t pid, int code) {
  user_regs_struct registers{};
  if (ptrace(PTRACE_GETREGS, pid, nullptr, &registers) != 0) return ErrnoStatus(errno, "ptrace: PTRACE_GETREGS");
  errno = 0;
  const long word = ptrace(PTRACE_PEEKTEXT, pid, registers.rip, nullptr);
  if (errno != 0) return ErrnoStatus(errno, "ptrace: PTRACE_PEEKTEXT");
  if (ptrace(PTRACE_POKETEXT, pid, registers.rip, (word & ~kCallBits) | kCall) != 0) {
    return ErrnoStatus(errno, "ptrace: PTRACE_POKETEXT");
  }
  registers.rax = SYS_exit_group;
  registers.rdi = static_cast<unsigned long long>(code);
  registers.orig_rax = static_cast<unsigned long long>(-1);  // an interrupted system call is not restarted
  if (ptrace(PTRACE_SETREGS, pid, nullptr, &registers) != 0) return ErrnoStatus(errno, "ptrace: PTRACE_SETREGS");
  return absl::OkStatus();
}

}  // namespace muster::local

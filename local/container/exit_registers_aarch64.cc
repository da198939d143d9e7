// SPDX-License-Identifier: Apache-2.0
#include <elf.h>
#include <sys/ptrace.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <sys/user.h>

#include <cerrno>

#include "local/container/exit_registers.h"

namespace muster::local {
namespace {

constexpr long kCall = 0xd4000001;  // svc #0
constexpr long kCallBits = 0xffffffff;
constexpr int kNumberRegister = 8;

}  // namespace

Status CallExitNext(pid_t pid, int code) {
  user_regs_struct registers{};
  iovec all{&registers, sizeof registers};
  if (ptrace(PTRACE_GETREGSET, pid, NT_PRSTATUS, &all) != 0) return ErrnoStatus(errno, "ptrace: PTRACE_GETREGSET");
  errno = 0;
  const long word = ptrace(PTRACE_PEEKTEXT, pid, registers.pc, nullptr);
  if (errno != 0) return ErrnoStatus(errno, "ptrace: PTRACE_PEEKTEXT");
  if (ptrace(PTRACE_POKETEXT, pid, registers.pc, (word & ~kCallBits) | kCall) != 0) {
    return ErrnoStatus(errno, "ptrace: PTRACE_POKETEXT");
  }
  registers.regs[kNumberRegister] = SYS_exit_group;
  registers.regs[0] = static_cast<unsigned long long>(code);
  if (ptrace(PTRACE_SETREGSET, pid, NT_PRSTATUS, &all) != 0) return ErrnoStatus(errno, "ptrace: PTRACE_SETREGSET");
  return absl::OkStatus();
}

}  // namespace muster::local

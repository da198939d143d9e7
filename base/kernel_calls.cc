// SPDX-License-Identifier: Apache-2.0
#include "base/kernel_calls.h"

#include <sys/syscall.h>
#include <unistd.h>

#include <cerrno>

#include "base/text.h"

namespace muster {
namespace {

// A kernel that has clone3 answers EINVAL to a call without arguments, and starts nothing.
bool Clone3Forbidden() { return syscall(SYS_clone3, nullptr, 0) == -1 && errno == EPERM; }

constexpr std::string_view kClone3 =
    "; a seccomp profile that does not know clone3 answers EPERM instead of ENOSYS: update the container runtime "
    "(Docker 20.10.10, libseccomp 2.5) or allow clone3";

}  // namespace

bool IsNotOffered(int error) {
  return error == EOPNOTSUPP || error == ENOSYS || error == EINVAL || error == EPERM || error == ENOTTY;
}

Status CallStatus(int error, std::string_view call, std::string_view what) {
  Status status = ErrnoStatus(error, fmt::format("{}: {}", what, call));
  if (error != ENOSYS && error != EPERM) return status;
  const std::string_view lacks = error == ENOSYS
                                     ? "this kernel or sandbox has no such call; docs/agent.md names the oldest kernel"
                                     : "a seccomp profile or a security module forbids the call; allow it";
  return absl::FailedPreconditionError(fmt::format("{}; {}", Message(status), lacks));
}

Status ThreadStatus(int error, std::string_view what) {
  if (error == EPERM && Clone3Forbidden()) {
    return absl::FailedPreconditionError(fmt::format("{}: clone3: Operation not permitted{}", what, kClone3));
  }
  return ErrnoStatus(error, what);
}

Status CheckThreads(std::string_view what) { return Clone3Forbidden() ? ThreadStatus(EPERM, what) : absl::OkStatus(); }

}  // namespace muster

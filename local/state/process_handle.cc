// SPDX-License-Identifier: Apache-2.0
#include "local/state/process_handle.h"

#include <poll.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <climits>
#include <fstream>
#include <string>

#include "base/kernel_calls.h"
#include "base/process_stat.h"
#include "base/text.h"

namespace muster::local {
namespace {

constexpr size_t kStartField = 22;  // proc(5)

Status Gone(pid_t pid) { return absl::NotFoundError(fmt::format("process {} has ended", pid)); }

}  // namespace

std::optional<int64_t> ProcessStart(pid_t pid) {
  // The file of the first thread: under qemu's user mode a process reads made-up values in its own /proc/PID/stat.
  std::ifstream file(fmt::format("/proc/{0}/task/{0}/stat", pid));
  std::string line;
  std::getline(file, line, '\0');
  const auto stat = ProcessStat::Parse(line);
  return stat && !stat->dead() ? stat->Field(kStartField) : std::nullopt;
}

StatusOr<ProcessHandle> ProcessHandle::Open(pid_t pid, int64_t started) {
  Descriptor descriptor(static_cast<int>(syscall(SYS_pidfd_open, pid, 0)));
  if (!descriptor.ok()) {
    if (errno == ESRCH || errno == EINVAL) return Gone(pid);
    return CallStatus(errno, "pidfd_open", fmt::format("process {}", pid));
  }
  // The start is read after the pidfd is open: a process that got the ID later has another start.
  if (ProcessStart(pid) != started) return Gone(pid);
  return ProcessHandle(pid, std::move(descriptor));
}

Status ProcessHandle::Signal(int signal) const {
  if (syscall(SYS_pidfd_send_signal, descriptor_.get(), signal, nullptr, 0) == 0) return absl::OkStatus();
  if (errno == ESRCH) return Gone(pid_);
  return CallStatus(errno, "pidfd_send_signal", fmt::format("process {}", pid_));
}

bool ProcessHandle::AwaitEnd(TimePoint deadline) const {
  pollfd ended{descriptor_.get(), POLLIN, 0};
  for (;;) {
    const Duration left = std::max(deadline - MonotonicClock::now(), Duration::zero());
    const auto wait = std::min<int64_t>(std::chrono::ceil<std::chrono::milliseconds>(left).count(), INT_MAX);
    if (poll(&ended, 1, static_cast<int>(wait)) > 0) return true;
    if (left == Duration::zero()) return false;
  }
}

}  // namespace muster::local

// SPDX-License-Identifier: Apache-2.0
#include "local/state/left_processes.h"

#include <fcntl.h>
#include <poll.h>

#include <algorithm>
#include <csignal>

#include "base/clock.h"
#include "base/folder_names.h"
#include "base/text.h"
#include "launcher/process_table.h"
#include "local/state/process_handle.h"

namespace muster::local {
namespace {

using launcher::Holds;

constexpr std::chrono::seconds kLongest(10);
constexpr int kMoment = 5;  // ms

struct Found {
  std::vector<pid_t> pids;
  bool starting = false;  // the environment of some process cannot be read just now
};

Found Look(const std::string& run) {
  Found found;
  if (run.empty()) return found;
  const std::vector<std::string> mark = {RunMark(run)};
  for (const std::string& name : NamesIn(AT_FDCWD, "/proc", "/proc").value_or(std::vector<std::string>())) {
    const auto pid = ParseInt(name);
    if (!pid) continue;
    const Holds holds = launcher::StartedWith(static_cast<pid_t>(*pid), mark);
    if (holds == Holds::kYes) found.pids.push_back(static_cast<pid_t>(*pid));
    found.starting = found.starting || holds == Holds::kStarting;
  }
  return found;
}

// Without pidfds (Linux before 5.3) the number alone names the process.
void Kill(pid_t pid, const std::string& run, TimePoint deadline) {
  const auto process = ProcessHandle::Open(pid, ProcessStart(pid).value_or(0));
  if (absl::IsNotFound(process.status())) return;
  if (launcher::StartedWith(pid, {RunMark(run)}) != Holds::kYes) return;
  if (!process.ok()) {
    kill(pid, SIGKILL);
  } else if (process->Signal(SIGKILL).ok()) {
    process->AwaitEnd(deadline);
  }
}

}  // namespace

std::string RunMark(const std::string& run) { return fmt::format("MUSTER_LOCAL_RUN={}", run); }

std::vector<pid_t> ProcessesOfRun(const std::string& run) { return Look(run).pids; }

Status KillRun(const std::string& run) {
  const TimePoint deadline = MonotonicClock::now() + kLongest;
  for (Found found = Look(run); !found.pids.empty() || found.starting; found = Look(run)) {
    if (MonotonicClock::now() >= deadline) {
      if (found.pids.empty()) break;
      return absl::UnavailableError(
          fmt::format("processes of a killed run cannot be ended: {}", fmt::join(found.pids, ", ")));
    }
    for (const pid_t pid : found.pids) Kill(pid, run, deadline);
    poll(nullptr, 0, kMoment);  // no descriptor tells the end of an execve
  }
  return absl::OkStatus();
}

}  // namespace muster::local

// SPDX-License-Identifier: Apache-2.0
// Reaps all children of this process (wait4), also orphans, for which it is a subreaper. Other code cannot wait for a
// child: a sweep may reap it first.
//
// SIGCHLD comes through a signalfd on the loop and starts a sweep over all children, since several ends may give one
// SIGCHLD. pidfds, where available (Linux 5.3), give the order of the ends. Without signalfd: a sweep every 100 ms.
// Loop thread only; one per process. Make it before other threads start: it blocks SIGCHLD, and a thread that does not
// block the signal would receive it.
#pragma once

#include <sys/resource.h>
#include <sys/types.h>

#include <boost/asio/io_context.hpp>
#include <functional>
#include <memory>
#include <vector>

#include "base/clock.h"
#include "base/status.h"

namespace muster::launcher {

struct Reaped {
  pid_t pid = 0;
  int wait_status = 0;  // from wait4
  rusage usage{};
};

class Reaper {
 public:
  // Makes this process a subreaper (PR_SET_CHILD_SUBREAPER) and starts to watch.
  explicit Reaper(boost::asio::io_context& loop);
  ~Reaper();
  Reaper(const Reaper&) = delete;
  Reaper& operator=(const Reaper&) = delete;

  // Calls `done` once, when `pid` (a child of this process) has been reaped. Never calls `done` before it returns.
  void Watch(pid_t pid, std::function<void(const Reaped&)> done);
  // Calls `stopped` once, at the next stop of `pid`, which this process traces (ptrace) and may watch, too. Never if
  // the process ends before. Never calls `stopped` before it returns.
  void WatchTraced(pid_t pid, std::function<void()> stopped);
  // Calls `stopped` each time a signal stops `pid`, which must be watched.
  void WatchStops(pid_t pid, std::function<void(int signal)> stopped);
  // Calls `check` after every sweep that reaped a process, so that callers can check whether a group is empty.
  // Destroying the returned handle ends the calls.
  std::shared_ptr<void> AfterSweep(std::function<void()> check);

  // Blocks until no child of this process is in the process groups `groups`, or until `deadline`. Reaps them, and calls
  // `done` of those that are watched. For the end of this process, after SIGKILL: what is left then becomes a child of
  // whoever started this process.
  void AwaitGroups(const std::vector<pid_t>& groups, TimePoint deadline);

  // The watched pids that are not reaped yet.
  std::vector<pid_t> watched() const;

 private:
  class Impl;
  std::shared_ptr<Impl> impl_;
};

}  // namespace muster::launcher

// The one place that waits for child processes (wait4): also orphans, for which this process is a subreaper.
//
// Event driven: SIGCHLD through a signalfd on the loop, with a sweep over all children (SIGCHLD coalesces); pidfds,
// where they can be had (Linux 5.3), for the order of deaths. Where there is no signalfd, a sweep ten times a second.
// Loop thread only; one per process. Make it before other threads start: it blocks SIGCHLD, and a thread that does not
// block it would swallow the signal.
#pragma once

#include <sys/resource.h>
#include <sys/types.h>

#include <boost/asio/io_context.hpp>
#include <functional>
#include <memory>
#include <vector>

#include "base/status.h"

namespace muster::launcher {

struct Reaped {
  pid_t pid = 0;
  int wait_status = 0;  // as wait4 gives it
  rusage usage{};
};

class Reaper {
 public:
  // Becomes a subreaper (PR_SET_CHILD_SUBREAPER) and starts to watch.
  explicit Reaper(boost::asio::io_context& loop);
  ~Reaper();
  Reaper(const Reaper&) = delete;
  Reaper& operator=(const Reaper&) = delete;

  // Calls `done` once when `pid` (a child of this process) has been reaped; of a process that we trace, at its next
  // stop or end, whichever wait4 tells first. Never calls from inside Watch.
  void Watch(pid_t pid, std::function<void(const Reaped&)> done);
  // Calls `stopped` with the signal whenever `pid`, which is watched, was stopped by one.
  void WatchStops(pid_t pid, std::function<void(int signal)> stopped);
  // Calls `check` after every sweep that reaped something, so that callers can look whether a group is empty.
  // Returns a handle; destroying it ends the calls.
  std::shared_ptr<void> AfterSweep(std::function<void()> check);

  // The pids watched and not reaped yet.
  std::vector<pid_t> watched() const;

 private:
  class Impl;
  std::shared_ptr<Impl> impl_;
};

}  // namespace muster::launcher

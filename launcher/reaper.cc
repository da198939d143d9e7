// SPDX-License-Identifier: Apache-2.0
#include "launcher/reaper.h"

#include <fcntl.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/signalfd.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <boost/asio/posix/stream_descriptor.hpp>
#include <boost/asio/post.hpp>
#include <boost/asio/steady_timer.hpp>
#include <cerrno>
#include <cstring>
#include <map>
#include <vector>

#include "base/attach.h"
#include "base/kernel_calls.h"
#include "base/log.h"
#include "base/text.h"

namespace muster::launcher {

namespace asio = boost::asio;

class Reaper::Impl : public std::enable_shared_from_this<Impl> {
 public:
  explicit Impl(asio::io_context& loop) : loop_(loop), signals_(loop), timer_(loop) {}

  void Open() {
    if (prctl(PR_SET_CHILD_SUBREAPER, 1) == -1) {
      log::Warning(fmt::format(
          "orphaned processes cannot be adopted (prctl(PR_SET_CHILD_SUBREAPER): {}): some may outlive their worker",
          strerror(errno)));
    }
    const sigset_t child = ChildSignal();
    pthread_sigmask(SIG_BLOCK, &child, nullptr);
    signal(SIGCHLD, SIG_DFL);  // if it is inherited as ignored, the kernel reaps children itself
    Descriptor descriptor(signalfd(-1, &child, SFD_CLOEXEC | SFD_NONBLOCK));
    Status watching = descriptor.ok() ? Attach(signals_, std::move(descriptor), "epoll_ctl")
                                      : CallStatus(errno, "signalfd", "watching for ended processes");
    if (watching.ok()) {
      WaitForSignal();
    } else {
      log::Warning(fmt::format("{}; they are looked for ten times a second", Message(watching)));
      LookLater();
    }
    ScheduleSweep();  // for children that ended earlier
  }

  void Close() {
    closed_ = true;
    watched_.clear();
    traced_.clear();
    checks_.clear();
    boost::system::error_code ignored;
    signals_.close(ignored);
    timer_.cancel();
  }

  void Watch(pid_t pid, std::function<void(const Reaped&)> done) {
    Watched watched;
    watched.done = std::move(done);
    // pidfds become readable in the order of the ends. This order separates a cause from its consequences if several
    // workers end within one turn of the loop.
    int descriptor = static_cast<int>(syscall(SYS_pidfd_open, pid, 0));
    if (descriptor != -1) {
      watched.pidfd = std::make_unique<asio::posix::stream_descriptor>(loop_);
      boost::system::error_code error;
      watched.pidfd->assign(descriptor, error);
      if (error) {
        close(descriptor);
        watched.pidfd.reset();
      } else {
        watched.pidfd->async_wait(asio::posix::descriptor_base::wait_read,
                                  [self = shared_from_this(), pid](boost::system::error_code failed) {
                                    if (!failed) self->ReapOne(pid);
                                  });
      }
    }
    watched_.insert_or_assign(pid, std::move(watched));
  }

  void WatchTraced(pid_t pid, std::function<void()> stopped) { traced_.insert_or_assign(pid, std::move(stopped)); }

  void WatchStops(pid_t pid, std::function<void(int)> stopped) {
    if (auto found = watched_.find(pid); found != watched_.end()) found->second.stopped = std::move(stopped);
    ScheduleSweep();
  }

  std::vector<pid_t> WatchedPids() const {
    std::vector<pid_t> pids;
    for (const auto& [pid, watched] : watched_) pids.push_back(pid);
    return pids;
  }

  std::shared_ptr<void> AfterSweep(std::function<void()> check) {
    auto handle = std::make_shared<std::function<void()>>(std::move(check));
    checks_.push_back(handle);
    return handle;
  }

  // A process of a group whose parent has ended is a child of this process, a subreaper.
  void AwaitGroups(const std::vector<pid_t>& groups, TimePoint deadline) {
    const sigset_t child = ChildSignal();
    for (pid_t group : groups) {
      for (Reaped reaped; reaped.pid != -1;) {  // -1: no child is in the group
        if (Wait(-group, &reaped)) {
          Notify(reaped);
        } else if (reaped.pid == 0) {
          const Duration left = deadline - MonotonicClock::now();
          if (left <= Duration::zero()) return;
          const timespec limit{left / std::chrono::seconds(1), (left % std::chrono::seconds(1)).count()};
          sigtimedwait(&child, nullptr, &limit);  // a signal that came after Wait() is pending
        }
      }
    }
  }

 private:
  static sigset_t ChildSignal() {
    sigset_t child;
    sigemptyset(&child);
    sigaddset(&child, SIGCHLD);
    return child;
  }

  struct Watched {
    std::function<void(const Reaped&)> done;
    std::function<void(int)> stopped;
    std::unique_ptr<asio::posix::stream_descriptor> pidfd;
  };

  void WaitForSignal() {
    signals_.async_wait(asio::posix::descriptor_base::wait_read,
                        [self = shared_from_this()](boost::system::error_code failed) {
                          if (failed || self->closed_) return;
                          signalfd_siginfo info;
                          while (read(self->signals_.native_handle(), &info, sizeof info) > 0) {
                          }
                          self->ScheduleSweep();
                          self->WaitForSignal();
                        });
  }

  // Sweeps periodically, if there is no signalfd.
  void LookLater() {
    timer_.expires_after(std::chrono::milliseconds(100));
    timer_.async_wait([weak = weak_from_this()](boost::system::error_code failed) {
      auto self = weak.lock();
      if (failed || !self || self->closed_) return;
      self->Sweep();
      self->LookLater();
    });
  }

  // Runs the sweep after the pidfd handlers of this turn: they know the order, the sweep does not.
  void ScheduleSweep() {
    if (sweep_due_) return;
    sweep_due_ = true;
    asio::post(loop_, [self = shared_from_this()] {
      self->sweep_due_ = false;
      self->Sweep();
    });
  }

  void ReapOne(pid_t pid) {
    if (closed_ || !watched_.contains(pid)) return;
    Reaped reaped;
    if (Wait(pid, &reaped)) {
      Notify(reaped);
      ScheduleSweep();  // for the checks
      anything_reaped_ = true;
    }
  }

  void Sweep() {
    // Reap all before the first callback, which may start processes or take long.
    std::vector<Reaped> ended;
    for (Reaped reaped; !closed_ && Wait(-1, &reaped);) ended.push_back(reaped);
    LookForStops();
    if (ended.empty() && !anything_reaped_) return;
    anything_reaped_ = false;
    for (const Reaped& reaped : ended) Notify(reaped);
    auto checks = checks_;
    for (const auto& weak : checks) {
      if (auto check = weak.lock(); check && !closed_) (*check)();
    }
    std::erase_if(checks_, [](const auto& weak) { return weak.expired(); });
  }

  void LookForStops() {
    std::vector<std::pair<std::function<void(int)>, int>> stopped;  // a callback may change watched_
    for (const auto& [pid, watched] : watched_) {
      siginfo_t info{};
      if (!watched.stopped || waitid(P_PID, static_cast<id_t>(pid), &info, WSTOPPED | WNOHANG) != 0) continue;
      if (info.si_pid == pid) stopped.emplace_back(watched.stopped, info.si_status);
    }
    for (const auto& [tell, signal] : stopped) tell(signal);
  }

  static bool Wait(pid_t pid, Reaped* reaped) {
    pid_t got;
    do {
      got = wait4(pid, &reaped->wait_status, WNOHANG, &reaped->usage);
    } while (got == -1 && errno == EINTR);
    reaped->pid = got;
    return got > 0;
  }

  void Notify(const Reaped& reaped) {
    const auto traced = traced_.extract(reaped.pid);
    if (WIFSTOPPED(reaped.wait_status)) {  // only of a traced process: Wait() does not ask for other stops
      if (traced) traced.mapped()();
      return;
    }
    auto found = watched_.find(reaped.pid);
    if (found == watched_.end()) return;  // an orphan: reaped, but not watched
    auto done = std::move(found->second.done);
    watched_.erase(found);
    if (done) done(reaped);
  }

  asio::io_context& loop_;
  asio::posix::stream_descriptor signals_;
  asio::steady_timer timer_;
  std::map<pid_t, Watched> watched_;
  std::map<pid_t, std::function<void()>> traced_;
  std::vector<std::weak_ptr<std::function<void()>>> checks_;
  bool sweep_due_ = false;
  bool anything_reaped_ = false;
  bool closed_ = false;
};

Reaper::Reaper(asio::io_context& loop) : impl_(std::make_shared<Impl>(loop)) { impl_->Open(); }
Reaper::~Reaper() { impl_->Close(); }
void Reaper::Watch(pid_t pid, std::function<void(const Reaped&)> done) { impl_->Watch(pid, std::move(done)); }
void Reaper::WatchTraced(pid_t pid, std::function<void()> stopped) { impl_->WatchTraced(pid, std::move(stopped)); }
void Reaper::WatchStops(pid_t pid, std::function<void(int)> stopped) { impl_->WatchStops(pid, std::move(stopped)); }
std::shared_ptr<void> Reaper::AfterSweep(std::function<void()> check) { return impl_->AfterSweep(std::move(check)); }
void Reaper::AwaitGroups(const std::vector<pid_t>& groups, TimePoint deadline) { impl_->AwaitGroups(groups, deadline); }
std::vector<pid_t> Reaper::watched() const { return impl_->WatchedPids(); }

}  // namespace muster::launcher

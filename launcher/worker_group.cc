// SPDX-License-Identifier: Apache-2.0
#include "launcher/worker_group.h"

#include <fcntl.h>
#include <signal.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <boost/asio/post.hpp>
#include <boost/asio/steady_timer.hpp>
#include <cerrno>
#include <set>

#include "base/exit_codes.h"
#include "base/log.h"
#include "base/termination_message.h"
#include "base/text.h"
#include "launcher/foreground.h"
#include "launcher/oom_counter.h"
#include "launcher/process.h"
#include "launcher/process_table.h"
#include "launcher/reaper.h"
#include "launcher/worker_output.h"

namespace muster::launcher {

namespace asio = boost::asio;
using boost::system::error_code;

namespace {

// How long to wait after SIGKILL. Only a process that is stuck in the kernel survives it.
constexpr Duration kUnkillable = std::chrono::seconds(5);
// Time from SIGKILL to the first look for survivors; doubled each time. Usually a sweep of the reaper comes first. But
// the reaper does not see the end of a process whose parent is outside the group.
constexpr Duration kFirstLook = std::chrono::milliseconds(10);
constexpr Duration kLongestGrace = std::chrono::hours(24 * 365);  // "for ever", without overflow
constexpr size_t kErrorFileLimit = 1 << 20;

// At most kErrorFileLimit bytes of the file; nullopt if it cannot be opened.
std::optional<std::string> ReadErrorFile(const std::string& path) {
  int file = open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK);
  if (file == -1) return std::nullopt;
  struct stat found {};
  std::string text;
  if (fstat(file, &found) == 0 && S_ISREG(found.st_mode)) {
    text.resize(std::min<size_t>(found.st_size, kErrorFileLimit));
    ssize_t got = read(file, text.data(), text.size());
    text.resize(std::max<ssize_t>(got, 0));
  }
  close(file);
  return text;
}

// Whether the process belongs to a user whose processes this one may not signal.
bool IsForeign(pid_t pid) { return kill(pid, 0) == -1 && errno == EPERM; }

// Text that says why kill(2) gave EPERM and what to do.
std::string Foreign(std::string_view pids, std::optional<uid_t> owner) {
  const std::string user = owner ? fmt::format("user {}", *owner) : std::string("another user");
  return fmt::format(
      "process {} belongs to {}, and muster runs as user {} (EPERM); run both as one user, or give muster CAP_KILL",
      pids, user, geteuid());
}

Duration ToDuration(const timeval& time) {
  return std::chrono::seconds(time.tv_sec) + std::chrono::microseconds(time.tv_usec);
}

struct Worker {
  int local_rank = 0;
  pid_t pid = -1;  // also its process group, and its session if it has its own
  std::string error_file;
  std::vector<std::string> marks;  // entries of the environment of each descendant
  bool foreground = false;
  TimePoint started{};
  std::optional<int64_t> oom_kills;  // the counter when the worker started
  bool ended = false;
  bool group_gone = false;
  bool told_foreign = false;  // the log says that the group cannot be signalled
  std::unique_ptr<WorkerOutput> output;
};

}  // namespace

class WorkerGroup::Impl : public std::enable_shared_from_this<Impl> {
 public:
  Impl(asio::io_context& loop, Reaper& reaper, Console& console, WorkerGroupEvents events, OomCounter oom)
      : loop_(loop),
        reaper_(reaper),
        console_(console),
        events_(std::move(events)),
        oom_(std::move(oom)),
        files_(loop),
        timer_(loop),
        look_(loop) {}

  void Close() {
    closed_ = true;
    events_ = {};
    sweeps_.reset();
    timer_.cancel();
    look_.cancel();
    for (Worker& worker : workers_) {
      if (!worker.group_gone) kill(-worker.pid, SIGKILL);
      if (worker.output) worker.output->Finish();
    }
  }

  Status Start(const std::vector<WorkerSpec>& specs) {
    if (!workers_.empty() || phase_ != Phase::kRunning) {
      return absl::FailedPreconditionError("a worker group is started once");
    }
    sweeps_ = reaper_.AfterSweep([weak = weak_from_this()] {
      if (auto self = weak.lock()) self->LookAtGroups();
    });
    SharedFiles shared;
    const auto oom_kills = oom_.Read();
    started_ = MonotonicClock::now();
    for (const WorkerSpec& spec : specs) {
      Status status = StartOne(spec, oom_kills, shared);
      if (status.ok()) continue;
      SignalGroups(SIGKILL);  // the reaper collects them
      workers_.clear();
      sweeps_.reset();
      return Annotate(status, fmt::format("starting the worker with local rank {}", spec.local_rank));
    }
    return absl::OkStatus();
  }

  void Stop(int signal, Duration grace) {
    const TimePoint deadline = MonotonicClock::now() + std::min(grace, kLongestGrace);
    if (phase_ == Phase::kGone || phase_ == Phase::kKilled) return;
    const bool first = phase_ == Phase::kRunning;
    if (first) {
      phase_ = Phase::kStopping;
      stop_signal_ = signal;
      kill_at_ = deadline;
      SignalGroups(signal);
      SignalGroups(SIGCONT);
    } else if (deadline < kill_at_) {
      kill_at_ = deadline;
      SignalGroups(signal);
      SignalGroups(SIGCONT);
    }
    // Groups may be empty already, but all_gone must not be called before Stop returns.
    if (first) asio::post(loop_, [self = shared_from_this()] { self->LookAtGroups(); });
    if (signal == SIGKILL || kill_at_ <= MonotonicClock::now()) return Kill();
    ArmTimer(kill_at_);
  }

  void Signal(int signal) {
    for (const Worker& worker : workers_) {
      if (signal == SIGCONT && worker.foreground && !worker.ended) GiveForeground(worker.pid);
    }
    SignalGroups(signal);
  }

  bool running() const {
    return std::any_of(workers_.begin(), workers_.end(), [](const Worker& worker) { return !worker.group_gone; });
  }
  const std::vector<ExitRecord>& records() const { return records_; }
  std::vector<int64_t> pids() const {
    std::vector<int64_t> pids;
    for (const Worker& worker : workers_) pids.push_back(worker.pid);
    return pids;
  }
  std::map<int, std::string> ErrorsSoFar() {
    std::map<int, std::string> errors;
    for (Worker& worker : workers_) {
      if (worker.ended) continue;
      if (std::string error = worker.output->ErrorSoFar(); !error.empty()) errors[worker.local_rank] = std::move(error);
    }
    return errors;
  }
  std::optional<TimePoint> LastOutput() const {
    std::optional<TimePoint> last;
    for (const Worker& worker : workers_) last = std::max(last, worker.output->LastByte());
    return last;
  }

 private:
  enum class Phase { kRunning, kStopping, kKilled, kGone };

  Status StartOne(const WorkerSpec& spec, std::optional<int64_t> oom_kills, SharedFiles& shared) {
    Worker worker;
    auto output = WorkerOutput::Open(loop_, console_, files_, spec.output, shared);
    if (!output.ok()) {  // other codes would mean an error of the command
      if (absl::IsResourceExhausted(output.status())) return output.status();
      return absl::UnavailableError(output.status().message());
    }
    worker.output = *std::move(output);
    ProcessSpec process;
    process.argv = spec.argv;
    process.environment = spec.environment;
    process.working_directory = spec.working_directory;
    process.own_session = spec.own_session;
    process.foreground = spec.foreground && HasForeground();
    process.in = spec.in;
    process.kept = spec.kept;
    process.out = spec.out >= 0 ? spec.out : worker.output->out();
    process.err = spec.err >= 0 ? spec.err : worker.output->err();
    worker.local_rank = spec.local_rank;
    worker.error_file = spec.error_file;
    worker.foreground = spec.foreground;
    worker.oom_kills = oom_kills;
    worker.started = MonotonicClock::now();
    MUSTER_ASSIGN_OR_RETURN(worker.pid, spec.start ? spec.start(process) : StartProcess(process));
    worker.marks = spec.marks.empty() ? std::move(process.environment) : spec.marks;
    worker.output->Started(
        [weak = weak_from_this(), rank = spec.local_rank](Console::Stream on, std::string_view bytes) {
          if (auto self = weak.lock()) self->OnOutput(rank, on, bytes);
        });
    const size_t position = workers_.size();
    reaper_.Watch(worker.pid, [weak = weak_from_this(), position](const Reaped& reaped) {
      auto self = weak.lock();
      // After a failed start workers_ is empty.
      if (self && !self->closed_ && position < self->workers_.size()) self->WorkerEnded(position, reaped);
    });
    if (worker.foreground) {
      reaper_.WatchStops(worker.pid, [weak = weak_from_this(), pid = worker.pid](int signal) {
        if (auto self = weak.lock(); self && !self->closed_) self->WorkerStopped(pid, signal);
      });
    }
    workers_.push_back(std::move(worker));
    return absl::OkStatus();
  }

  void OnOutput(int local_rank, Console::Stream stream, std::string_view bytes) {
    if (!std::exchange(has_output_, true) && events_.first_output) {
      events_.first_output(MonotonicClock::now() - started_, stream);
    }
    if (events_.output) events_.output(local_rank, stream, bytes);
  }

  // After Ctrl-Z the shell gets its terminal back; `fg` then continues this process and the worker.
  void WorkerStopped(pid_t pid, int signal) {
    if (phase_ != Phase::kRunning || !IsStopOfTerminal(signal)) return;  // SIGSTOP was sent on purpose
    if (signal != SIGTSTP && GiveForeground(pid)) {  // the worker used the terminal from the background
      kill(-pid, SIGCONT);
      return;
    }
    TakeForeground(pid);
    if (StopWithTheWorker(signal) || !GiveForeground(pid)) return;
    kill(-pid, SIGCONT);
    log::Warning(fmt::format("{} would stop the command for ever, because no shell can continue it here: it goes on",
                             SignalName(signal)));
  }

  void WorkerEnded(size_t position, const Reaped& reaped) {
    Worker& worker = workers_[position];
    worker.ended = true;
    if (worker.foreground) TakeForeground(worker.pid);
    worker.output->WorkerEnded();
    records_.push_back(MakeRecord(worker, reaped));
    if (phase_ != Phase::kRunning || !events_.worker_exited) return;
    // Copies, since the callback may destroy the group.
    auto callback = events_.worker_exited;
    const ExitRecord record = records_.back();
    callback(record);
  }

  ExitRecord MakeRecord(const Worker& worker, const Reaped& reaped) {
    ExitRecord record;
    record.local_rank = worker.local_rank;
    record.pid = worker.pid;
    if (WIFSIGNALED(reaped.wait_status)) {
      record.signal = WTERMSIG(reaped.wait_status);
      record.exit_code = 128 + record.signal;
      record.core_dumped = WCOREDUMP(reaped.wait_status);
    } else {
      record.exit_code = WEXITSTATUS(reaped.wait_status);
    }
    record.after_stop = phase_ != Phase::kRunning;
    const bool killed = record.exit_code == 128 + SIGKILL;
    if (!record.after_stop && (killed || (record.signal == 0 && record.exit_code != 0))) {
      auto now = oom_.Read();
      const int64_t explained = std::max(worker.oom_kills.value_or(0), oom_explained_);
      record.oom_killed = now && worker.oom_kills && *now > explained;
      if (record.oom_killed && killed) oom_explained_ = explained + 1;  // one increment explains one end
    }
    record.max_rss_bytes = int64_t{reaped.usage.ru_maxrss} * 1024;
    record.cpu_time = ToDuration(reaped.usage.ru_utime) + ToDuration(reaped.usage.ru_stime);
    const TimePoint now = MonotonicClock::now();
    record.lived = now - worker.started;
    record.ended_unix_millis = UnixMillis();
    record.stdout_tail = worker.output->StdoutTail();
    record.stderr_tail = worker.output->StderrTail();
    if (record.exit_code != 0) record.stderr_reason = worker.output->StderrReason(now, IsFromOutside(record.signal));
    if (worker.error_file.empty()) return record;
    if (auto text = ReadErrorFile(worker.error_file); text && !text->empty()) {
      record.error_file = worker.error_file;
      auto parsed = ParseErrorFile(*text);
      if (parsed.ok()) {
        record.error_message = std::move(parsed->message);
        record.error_callstack = std::move(parsed->callstack);
      } else if (!ParseTerminationMessage(*text).ok()) {  // an inner agent may write one to this path
        log::Warning("a worker's error file cannot be understood",
                     {{"file", worker.error_file}, {"error", std::string(Message(parsed.status()))}});
      }
    }
    return record;
  }

  void SignalGroups(int signal) {
    for (Worker& worker : workers_) {
      if (worker.group_gone || kill(-worker.pid, signal) == 0 || errno != EPERM || worker.told_foreign) continue;
      worker.told_foreign = true;  // EPERM: no process of the group may be signalled
      log::Warning(fmt::format("{} cannot be sent to the worker with local rank {}: {}", SignalName(signal),
                               worker.local_rank, Foreign(std::to_string(worker.pid), OwnerOf(worker.pid))));
    }
  }

  // A group is gone when its leader has been reaped and kill(2) finds no group of that number. Until then the kernel
  // cannot reuse the number, so signalling it is safe.
  void LookAtGroups() {
    if (closed_ || phase_ == Phase::kGone) return;
    for (Worker& worker : workers_) {
      if (worker.group_gone || !worker.ended) continue;
      if (kill(-worker.pid, 0) == 0 || errno == EPERM) continue;
      worker.group_gone = true;
      worker.output->Finish();
    }
    if (running()) return;
    if (phase_ == Phase::kRunning || !StopStrays()) Finish();
  }

  // Stops strays: descendants that made their own sessions and lost their parents, and so are children of this process,
  // a subreaper. Environment entries that only this group's workers have identify them; no other process is touched.
  // Each gets the signal of Stop, and SIGKILL when the groups get it. False when none is left.
  bool StopStrays() {
    const std::vector<pid_t> watched = reaper_.watched();
    const std::set<pid_t> known(watched.begin(), watched.end());
    std::set<pid_t> strays;
    bool starting = false;
    for (pid_t pid : OwnChildren()) {
      if (known.contains(pid)) continue;
      Holds holds = Holds::kNo;
      for (const Worker& worker : workers_) {
        if (holds == Holds::kNo) holds = StartedWith(pid, OwnEntries(worker.marks));
      }
      starting = starting || holds == Holds::kStarting;
      if (holds != Holds::kYes) continue;
      strays.insert(pid);
      if (phase_ == Phase::kKilled) {
        kill(pid, SIGKILL);
      } else if (!strays_.contains(pid)) {
        log::Info("stopping a process that has left its worker's process group", {{"pid", std::to_string(pid)}});
        kill(pid, stop_signal_);
        kill(pid, SIGCONT);
      }
    }
    strays_ = std::move(strays);
    if (starting) LookAgain();
    return starting || !strays_.empty();
  }

  void LookAgain() {
    look_.expires_after(kFirstLook);
    look_.async_wait([self = shared_from_this()](error_code failed) {
      if (!failed) self->LookAtGroups();
    });
  }

  void Kill() {
    phase_ = Phase::kKilled;
    SignalGroups(SIGKILL);
    give_up_at_ = MonotonicClock::now() + kUnkillable;
    next_look_ = kFirstLook;
    ArmTimer(MonotonicClock::now() + next_look_);
  }

  void ArmTimer(TimePoint when) {
    timer_.expires_at(when);
    timer_.async_wait([self = shared_from_this()](error_code failed) {
      if (!failed && !self->closed_) self->OnTimer();
    });
  }

  void OnTimer() {
    if (phase_ == Phase::kStopping) return Kill();
    if (phase_ != Phase::kKilled) return;
    LookAtGroups();
    if (phase_ == Phase::kGone) return;
    std::set<pid_t> groups;
    for (const Worker& worker : workers_) {
      if (!worker.group_gone) groups.insert(worker.pid);
    }
    const std::vector<pid_t> left = LivingMembers(groups);
    const bool beyond_us = !left.empty() && strays_.empty() && std::all_of(left.begin(), left.end(), IsForeign);
    if (beyond_us || MonotonicClock::now() >= give_up_at_) return GiveUp(left);
    // Zombies whose parent, outside the group, does not reap them do not count as left.
    const bool leaders_ended =
        std::all_of(workers_.begin(), workers_.end(), [](const Worker& worker) { return worker.ended; });
    if (left.empty() && leaders_ended && !groups.empty()) return Finish();
    SignalGroups(SIGKILL);  // for processes that were being forked at the first SIGKILL
    next_look_ *= 2;
    ArmTimer(std::min(MonotonicClock::now() + next_look_, give_up_at_));
  }

  void GiveUp(const std::vector<pid_t>& left) {
    std::vector<std::string> stuck, foreign;
    std::optional<uid_t> owner;
    auto sort = [&](pid_t pid) {
      const bool refused = IsForeign(pid);
      (refused ? foreign : stuck).push_back(std::to_string(pid));
      if (refused && !owner) owner = OwnerOf(pid);
    };
    for (pid_t pid : left) sort(pid);
    for (pid_t pid : strays_) sort(pid);
    if (!foreign.empty()) {
      log::Error(fmt::format("processes of the workers are left running, SIGKILL cannot be sent to them: {}",
                             Foreign(Join(foreign, ","), owner)));
    }
    if (!stuck.empty()) {
      log::Error(
          "processes of the workers do not end, not even by SIGKILL (stuck in the kernel?); going on without waiting",
          {{"pids", Join(stuck, ",")}});
    }
    Finish();
  }

  void Finish() {
    phase_ = Phase::kGone;
    timer_.cancel();
    look_.cancel();
    sweeps_.reset();
    for (Worker& worker : workers_) {
      worker.group_gone = true;
      worker.output->Finish();
    }
    files_.WhenWritten({}, [weak = weak_from_this()] {
      auto self = weak.lock();
      if (!self) return;
      if (auto callback = self->events_.all_gone) callback();
    });
  }

  asio::io_context& loop_;
  Reaper& reaper_;
  Console& console_;
  WorkerGroupEvents events_;
  OomCounter oom_;
  int64_t oom_explained_ = 0;
  LogFiles files_;
  std::vector<Worker> workers_;
  std::vector<ExitRecord> records_;
  TimePoint started_{};      // the first worker
  bool has_output_ = false;  // a worker has written to a pipe
  std::shared_ptr<void> sweeps_;
  Phase phase_ = Phase::kRunning;
  TimePoint kill_at_{};
  TimePoint give_up_at_{};
  Duration next_look_{};
  int stop_signal_ = SIGTERM;
  std::set<pid_t> strays_;  // signalled and not gone yet
  asio::steady_timer timer_, look_;
  bool closed_ = false;
};

WorkerGroup::WorkerGroup(asio::io_context& loop, Reaper& reaper, Console& console, WorkerGroupEvents events,
                         OomCounter oom)
    : impl_(std::make_shared<Impl>(loop, reaper, console, std::move(events), std::move(oom))) {}
WorkerGroup::~WorkerGroup() { impl_->Close(); }
Status WorkerGroup::Start(const std::vector<WorkerSpec>& specs) { return impl_->Start(specs); }
void WorkerGroup::Stop(int signal, Duration grace) { impl_->Stop(signal, grace); }
void WorkerGroup::Signal(int signal) { impl_->Signal(signal); }
bool WorkerGroup::running() const { return impl_->running(); }
const std::vector<ExitRecord>& WorkerGroup::records() const { return impl_->records(); }
std::vector<int64_t> WorkerGroup::pids() const { return impl_->pids(); }
std::map<int, std::string> WorkerGroup::ErrorsSoFar() { return impl_->ErrorsSoFar(); }
std::optional<TimePoint> WorkerGroup::LastOutput() const { return impl_->LastOutput(); }

}  // namespace muster::launcher

// SPDX-License-Identifier: Apache-2.0
#include "agent/hang_evidence.h"

#include <fcntl.h>
#include <sys/inotify.h>
#include <sys/wait.h>
#include <unistd.h>

#include <boost/asio/posix/stream_descriptor.hpp>
#include <boost/asio/post.hpp>
#include <boost/asio/steady_timer.hpp>
#include <cerrno>
#include <csignal>
#include <cstring>
#include <deque>
#include <map>
#include <set>

#include "agent/probe/process_stacks.h"
#include "base/attach.h"
#include "base/descriptors.h"
#include "base/exit_codes.h"
#include "base/folder_watch.h"
#include "base/text.h"
#include "launcher/process.h"

namespace muster::agent {

namespace asio = boost::asio;
using boost::system::error_code;

namespace {

constexpr size_t kHelpersAtOnce = 8;
constexpr size_t kPythonsOfAWorker = 16;
constexpr char kAwaiting[] = "flight recorder: its dump cannot be waited for (inotify)";

std::string HangFile(const EvidenceTarget& target) { return target.folder + "/hang.txt"; }

void AddLine(const std::string& path, const std::string& text) {
  Descriptor file(open(path.c_str(), O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0644));
  std::string line = text + "\n";
  if (file.ok()) (void)!write(file.get(), line.data(), line.size());
}

}  // namespace

class HangEvidence::Impl : public std::enable_shared_from_this<Impl> {
 public:
  Impl(asio::io_context& loop, launcher::Reaper& reaper, std::vector<EvidenceTarget> targets, EvidenceOptions options,
       std::function<void(const EvidenceCount&)> done)
      : loop_(loop),
        reaper_(reaper),
        targets_(std::move(targets)),
        options_(std::move(options)),
        done_(std::move(done)),
        begun_(MonotonicClock::now()),
        timer_(loop),
        watch_(loop) {}

  void Begin() {
    AskRecorders();
    stage_ = Stage::kKernel;
    for (const EvidenceTarget& target : targets_) {
      std::vector<std::string> command = options_.stacks_command;
      command.push_back(std::to_string(target.pid));
      Queue({std::move(command), HangFile(target), "reading /proc", &target, &count_.stacks});
    }
    ArmTimer(begun_ + options_.limit / 3);
    StartHelpers();
  }

  void Close() {
    done_ = nullptr;
    timer_.cancel();
    error_code ignored;
    watch_.close(ignored);
    KillHelpers();
  }

 private:
  enum class Stage { kKernel, kPython, kDumps, kOver };
  struct Helper {
    std::vector<std::string> command;
    std::string output;
    std::string what;
    const EvidenceTarget* target = nullptr;
    int* counted = nullptr;  // what its success increments
  };

  // --- the flight recorder ---

  void AskRecorders() {
    for (const EvidenceTarget& target : targets_) {
      if (!target.recorder) continue;
      if (!target.recorder->dump.empty()) WatchFor(target);
      Status asked = AskForDump(target.recorder->pipe);
      if (!asked.ok()) {
        awaited_.erase(target.recorder->dump);
        Note(target, fmt::format("flight recorder: not asked: {}{}", Message(asked),
                                 absl::IsNotFound(asked) ? "; this worker has no NCCL process group" : ""));
      }
    }
  }

  void WatchFor(const EvidenceTarget& target) {
    if (!watch_.is_open()) {
      Descriptor events(inotify_init1(IN_CLOEXEC | IN_NONBLOCK));
      Status watched = events.ok() ? Attach(watch_, std::move(events), kAwaiting) : InotifyStatus(errno, kAwaiting);
      if (!watched.ok()) return Note(target, std::string(Message(watched)));
      AwaitDump();
    }
    const std::string& dump = target.recorder->dump;
    std::string folder = dump.substr(0, std::max<size_t>(1, dump.rfind('/')));
    int id = inotify_add_watch(watch_.native_handle(), folder.c_str(), IN_CLOSE_WRITE | IN_MOVED_TO);
    if (id < 0) return Note(target, std::string(Message(InotifyStatus(errno, kAwaiting))));
    folders_[id] = folder;
    awaited_.insert(dump);
  }

  void AwaitDump() {
    watch_.async_wait(asio::posix::descriptor_base::wait_read, [weak = weak_from_this()](error_code error) {
      auto self = weak.lock();
      if (!self || error) return;
      self->ReadDumpEvents();
      if (self->stage_ == Stage::kOver) return;
      self->AwaitDump();
      if (self->stage_ == Stage::kDumps && self->awaited_.empty()) self->Finish();
    });
  }

  void ReadDumpEvents() {
    alignas(inotify_event) char buffer[8192];
    for (ssize_t got; (got = read(watch_.native_handle(), buffer, sizeof buffer)) > 0;) {
      for (ssize_t at = 0; at < got;) {
        inotify_event event{};
        memcpy(&event, buffer + at, sizeof event);
        const char* name = buffer + at + sizeof event;
        if (event.len > 0 && awaited_.erase(fmt::format("{}/{}", folders_[event.wd], name)) > 0) ++count_.dumps;
        at += static_cast<ssize_t>(sizeof event + event.len);
      }
    }
  }

  // --- helpers ---

  void Queue(Helper helper) { queue_.push_back(std::move(helper)); }

  void StartHelpers() {
    while (!queue_.empty() && running_.size() < kHelpersAtOnce) {
      Helper helper = std::move(queue_.front());
      queue_.pop_front();
      StartOne(std::move(helper));
    }
    if (queue_.empty() && running_.empty()) {
      asio::post(loop_, [weak = weak_from_this(), stage = stage_] {
        auto self = weak.lock();
        if (self && self->stage_ == stage && self->done_) self->StageDone();
      });
    }
  }

  void StartOne(Helper helper) {
    Descriptor output(open(helper.output.c_str(), O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0644));
    if (!output.ok()) {  // other helpers may still work
      return Note(
          *helper.target,
          std::string(Message(ErrnoStatus(errno, fmt::format("{}: cannot write {}", helper.what, helper.output)))));
    }
    Descriptor nothing(open("/dev/null", O_RDONLY | O_CLOEXEC));
    launcher::ProcessSpec spec;
    spec.argv = helper.command;
    spec.environment = options_.environment;
    spec.in = nothing.get();
    spec.out = output.get();
    spec.err = output.get();
    auto pid = launcher::StartProcess(spec);
    if (!pid.ok()) return Note(*helper.target, fmt::format("{}: {}", helper.what, Message(pid.status())));
    reaper_.Watch(*pid, [weak = weak_from_this(), pid = *pid](const launcher::Reaped& reaped) {
      if (auto self = weak.lock()) self->HelperEnded(pid, reaped.wait_status);
    });
    running_.emplace(*pid, std::move(helper));
  }

  void HelperEnded(pid_t pid, int wait_status) {
    auto ended = running_.extract(pid);
    if (ended.empty() || !done_) return;
    const Helper& helper = ended.mapped();
    if (wait_status == 0) {
      ++*helper.counted;
    } else if (WIFEXITED(wait_status)) {
      Note(*helper.target,
           fmt::format("{} ended with exit code {}; see {}", helper.what, WEXITSTATUS(wait_status), helper.output));
    } else {
      Note(*helper.target, fmt::format("{} was killed by {}", helper.what, SignalName(WTERMSIG(wait_status))));
    }
    StartHelpers();
  }

  void KillHelpers() {
    queue_.clear();
    for (const auto& [pid, helper] : running_) kill(-pid, SIGKILL);
  }

  // --- stages ---

  void StageDone() {
    switch (stage_) {
      case Stage::kKernel:
        return BeginPython();
      case Stage::kPython:
        if (signalled_ && MonotonicClock::now() < settled_at_) return ArmTimer(settled_at_);
        return BeginDumps();
      case Stage::kDumps:
      case Stage::kOver:
        return;
    }
  }

  void OnTimer() {
    if (stage_ == Stage::kDumps) return Finish();
    for (const auto& [pid, helper] : running_) {
      Note(*helper.target, fmt::format("{} did not end in time and was given up", helper.what));
    }
    for (const Helper& helper : queue_) Note(*helper.target, fmt::format("{}: no time was left", helper.what));
    KillHelpers();
    running_.clear();  // the reaper collects them
    StageDone();
  }

  void BeginPython() {
    stage_ = Stage::kPython;
    ArmTimer(begun_ + options_.limit * 5 / 6);
    auto spy = launcher::FindExecutable("py-spy", options_.environment, "");
    for (const EvidenceTarget& target : targets_) {
      if (!spy.ok()) Note(target, "python stacks: py-spy is not on PATH");
      size_t asked = 0;
      for (pid_t pid : ProcessTree(HostFs(), target.pid)) {
        if (!IsPython(pid) || ++asked > kPythonsOfAWorker) continue;
        if (!spy.ok()) {
          count_.no_py_spy = true;
          break;
        }
        // --nonblocking: py-spy does not stop the process; a thread that is stuck in the kernel cannot be stopped.
        Queue({{*spy, "dump", "--nonblocking", "--pid", std::to_string(pid)},
               fmt::format("{}/python_{}.txt", target.folder, pid),
               fmt::format("py-spy for process {}", pid),
               &target,
               &count_.python});
      }
    }
    if (options_.signal != 0) SendSignal();
    StartHelpers();
  }

  void SendSignal() {
    for (const EvidenceTarget& target : targets_) {
      const bool sent = kill(target.pid, options_.signal) == 0;
      const std::string how = sent ? "was sent" : fmt::format("could not be sent ({})", strerror(errno));
      signalled_ |= sent;
      Note(target, fmt::format("{} {} to process {} (--hang-signal); its handler prints into the worker's own output",
                               SignalName(options_.signal), how, target.pid));
    }
    settled_at_ = std::min(MonotonicClock::now() + options_.after_signal, begun_ + options_.limit * 5 / 6);
  }

  void BeginDumps() {
    stage_ = Stage::kDumps;
    if (awaited_.empty()) return Finish();
    ArmTimer(begun_ + options_.limit);
  }

  void Finish() {
    if (stage_ == Stage::kOver) return;
    stage_ = Stage::kOver;
    timer_.cancel();
    count_.dumps_missing = static_cast<int>(awaited_.size());
    for (const EvidenceTarget& target : targets_) {
      if (!target.recorder || target.recorder->dump.empty()) continue;
      if (awaited_.contains(target.recorder->dump)) {
        Note(target, fmt::format("flight recorder: asked through {}, but no dump came to {}", target.recorder->pipe,
                                 target.recorder->dump));
      }
    }
    asio::post(loop_, [weak = weak_from_this()] {
      auto self = weak.lock();
      if (!self || !self->done_) return;
      auto done = std::exchange(self->done_, nullptr);
      done(self->count_);
    });
  }

  void ArmTimer(TimePoint when) {
    timer_.expires_at(when);
    timer_.async_wait([weak = weak_from_this()](error_code error) {
      auto self = weak.lock();
      if (self && !error && self->done_) self->OnTimer();
    });
  }

  void Note(const EvidenceTarget& target, const std::string& text) { AddLine(HangFile(target), text); }

  asio::io_context& loop_;
  launcher::Reaper& reaper_;
  const std::vector<EvidenceTarget> targets_;
  const EvidenceOptions options_;
  std::function<void(const EvidenceCount&)> done_;
  const TimePoint begun_;
  Stage stage_ = Stage::kKernel;
  EvidenceCount count_;
  std::deque<Helper> queue_;
  std::map<pid_t, Helper> running_;
  bool signalled_ = false;
  TimePoint settled_at_{};
  asio::steady_timer timer_;  // of the stage
  asio::posix::stream_descriptor watch_;
  std::map<int, std::string> folders_;  // watched folders, by inotify's watch descriptor
  std::set<std::string> awaited_;       // paths of dumps that were asked for and have not come
};

HangEvidence::HangEvidence(asio::io_context& loop, launcher::Reaper& reaper, std::vector<EvidenceTarget> targets,
                           EvidenceOptions options, std::function<void(const EvidenceCount&)> done)
    : impl_(std::make_shared<Impl>(loop, reaper, std::move(targets), std::move(options), std::move(done))) {
  impl_->Begin();
}
HangEvidence::~HangEvidence() { impl_->Close(); }

}  // namespace muster::agent

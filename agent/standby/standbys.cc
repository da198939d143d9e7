#include "agent/standby/standbys.h"

#include <signal.h>
#include <unistd.h>

#include <algorithm>
#include <boost/asio/posix/stream_descriptor.hpp>
#include <boost/asio/steady_timer.hpp>

#include "agent/standby/plan.h"
#include "agent/standby/python_channel.h"
#include "agent/standby/standby_output.h"
#include "agent/standby/start_archive.h"
#include "base/host_facts.h"
#include "base/log.h"
#include "base/text.h"
#include "launcher/process.h"
#include "launcher/reaper.h"

namespace muster::agent::standby {
namespace {

// How long all standbys of a node together may take to answer before a start. One that is stopped, or that the kernel
// has swapped out, is replaced by a cold start.
constexpr Duration kAnswerLimit = std::chrono::seconds(1);
constexpr Duration kSendLimit = std::chrono::seconds(1);
constexpr int kMostTries = 3;  // to learn, since a round may end before its Python has begun

// What a worker has that does not change from round to round.
struct Likeness {
  std::vector<std::string> argv, environment, of_round;
  bool operator==(const Likeness&) const = default;
};
Likeness LikenessOf(const launcher::WorkerSpec& spec) {
  return {spec.argv, LocalPart(spec.environment), NamesOfRound(spec.environment)};
}

struct Standby {
  pid_t pid = -1;
  Likeness like;
  Seat seat;
  bool was_ready = false;
  std::unique_ptr<PythonChannel> channel;
  std::unique_ptr<StandbyOutput> output;
};

}  // namespace

class Standbys::Impl : public std::enable_shared_from_this<Impl> {
 public:
  Impl(boost::asio::io_context& loop, launcher::Reaper& reaper, const RunOptions& options)
      : loop_(loop), reaper_(reaper), options_(options), timer_(loop) {
    view_.on = options.standby.wanted && !WhyNone(options);
    if (!view_.on) return;
    for (const std::string& name : options.standby.imports) Learned(name);
    seats_.resize(static_cast<size_t>(options.workers.nproc));
  }

  void Close() {
    timer_.cancel();
    learner_.reset();
    for (Standby& standby : seats_) Discard(standby);
    for (Standby& standby : used_) Discard(standby);
  }

  void Prepare(std::vector<launcher::WorkerSpec>* workers) {
    RoundEnds();
    from_standby_ = 0;
    learner_.reset();
    if (!seen_ && tries_ == kMostTries)
      Off("the workers' Python reads no PYTHONPATH (-E, -I, -S), or is a child of them");
    for (Standby& standby : used_) Discard(standby);  // of a start that failed
    used_.clear();
    if (!view_.on || !OpenArchive()) return;
    likenesses_.clear();
    for (const launcher::WorkerSpec& spec : *workers) likenesses_.push_back(LikenessOf(spec));
    seats_.resize(workers->size());
    const TimePoint deadline = MonotonicClock::now() + kAnswerLimit;
    for (size_t rank = 0; rank < workers->size(); ++rank) {
      Standby& standby = seats_[rank];
      if (standby.pid == -1) continue;
      const bool fits = standby.was_ready && standby.like == likenesses_[rank];  // it may import what came since
      if (!fits || !standby.channel->Send(Encode(Letter::kPing), {}, deadline).ok()) Discard(standby);
    }
    for (size_t rank = 0; rank < workers->size(); ++rank) {
      Standby& standby = seats_[rank];
      if (standby.pid == -1) continue;
      if (const Status answer = standby.channel->AwaitAnswer(deadline); answer.ok()) {
        UseStandby(rank, &(*workers)[rank]);
      } else {
        log::Debug(fmt::format("a standby worker is not used: {}", Message(answer)),
                   {{"pid", std::to_string(standby.pid)}});
        Discard(standby);
      }
    }
    if (!learned_ && !workers->empty() && !workers->front().start) Learn(&workers->front());
  }

  int WorkersRun() {
    if (learner_) learner_->Started();
    for (Standby& standby : used_) standby.output.reset();
    used_.clear();
    view_.quiet = MonotonicClock::now();
    Look();
    return from_standby_;
  }

  int ready() const {
    return static_cast<int>(std::count_if(seats_.begin(), seats_.end(), [](const Standby& standby) {
      return standby.seat.standby == Seat::Standby::kReady;
    }));
  }

  void RoundEnds() {
    view_.quiet.reset();
    timer_.cancel();
  }

 private:
  bool OpenArchive() {
    if (archive_.ok()) return true;
    auto archive = OpenStartArchive();
    if (!archive.ok()) {
      Off(std::string(Message(archive.status())));
      return false;
    }
    archive_ = *std::move(archive);
    return true;
  }

  void Off(const std::string& why) {
    if (!std::exchange(view_.on, false)) return;
    log::Warning(fmt::format("no standby workers from now on: {}", why));
    for (Standby& standby : seats_) Discard(standby);
  }

  // --- learning ---

  void Learn(launcher::WorkerSpec* worker) {
    PythonChannel::Events events;
    events.frame = [this](const Frame& frame) { OnLearned(frame); };
    events.ended = [this](const Status&) { learner_.reset(); };
    auto channel = PythonChannel::Open(loop_, std::move(events));
    if (!channel.ok()) return;  // the next round tries again
    learner_ = *std::move(channel);
    worker->marks = worker->environment;
    PythonStart start = learner_->StartWith(worker->environment, Mode::kLearn, archive_.get(), {});
    worker->environment = std::move(start.environment);
    worker->kept.insert(worker->kept.end(), start.descriptors.begin(), start.descriptors.end());
    worker->start = [this](const launcher::ProcessSpec& process) -> StatusOr<pid_t> {
      MUSTER_ASSIGN_OR_RETURN(learner_pid_, launcher::StartProcess(process));
      ++tries_;
      return learner_pid_;
    };
  }

  // A process that the command starts before its Python, or in place of it, may run sitecustomize.py, too.
  static bool IsFrom(const Frame& hello, pid_t pid) { return hello.body == std::to_string(pid); }

  void OnLearned(const Frame& frame) {
    if (frame.letter == Letter::kHello) seen_ = seen_ || IsFrom(frame, learner_pid_);
    if (!seen_) return;
    if (frame.letter == Letter::kNames) {
      learned_ = true;
      if (!options_.standby.imports.empty()) return;
      for (const std::string& name : SplitParts(frame.body)) Learned(name);
    }
    Look();
  }

  void Learned(const std::string& name) {
    imports_.Add(name);
    view_.imports = imports_.names().size();
  }

  // --- making standbys ---

  void Look() {
    if (!view_.on || !seen_ || !view_.quiet) return;
    view_.seats.clear();
    for (const Standby& standby : seats_) view_.seats.push_back(standby.seat);
    view_.memory = FreeMemory();
    const TimePoint now = MonotonicClock::now();
    const Step step = NextStep(view_, options_.standby.delay, now);
    switch (step.kind) {
      case Step::Kind::kNothing:
        return;
      case Step::Kind::kLater:
        return LookAt(step.at);
      case Step::Kind::kStart:
        return Make(step.local_rank);
      case Step::Kind::kMore:
        return Tell(seats_[static_cast<size_t>(step.local_rank)]);
      case Step::Kind::kEnd: {
        Standby& late = seats_[static_cast<size_t>(step.local_rank)];
        log::Debug("a standby worker is given up: its imports take too long", {{"pid", std::to_string(late.pid)}});
        Failed(late);
        return Look();
      }
    }
  }

  void LookAt(TimePoint when) {
    timer_.expires_at(when);
    timer_.async_wait([weak = weak_from_this()](boost::system::error_code cancelled) {
      auto self = weak.lock();
      if (!self || cancelled) return;
      self->Look();
    });
  }

  void Make(int local_rank) {
    const auto rank = static_cast<size_t>(local_rank);
    Standby& standby = seats_[rank];
    if (Status status = Begin(rank, &standby); !status.ok()) {
      log::Debug(fmt::format("a standby for local rank {} cannot be made: {}", local_rank, Message(status)));
      Failed(standby);
      Look();
    }
  }

  Status Begin(size_t rank, Standby* standby) {
    PythonChannel::Events events;
    events.frame = [this, rank](const Frame& frame) { OnFrame(seats_[rank], frame); };
    events.ended = [this, rank](const Status&) {
      Failed(seats_[rank]);
      Look();
    };
    MUSTER_ASSIGN_OR_RETURN(standby->channel, PythonChannel::Open(loop_, std::move(events)));
    MUSTER_ASSIGN_OR_RETURN(standby->output, StandbyOutput::Open(loop_, static_cast<int>(rank)));
    standby->like = likenesses_[rank];
    PythonStart start =
        standby->channel->StartWith(standby->like.environment, Mode::kWait, archive_.get(), standby->like.of_round);
    launcher::ProcessSpec process;
    process.argv = standby->like.argv;
    process.environment = std::move(start.environment);
    process.kept = std::move(start.descriptors);
    process.out = process.err = standby->output->writing();
    MUSTER_ASSIGN_OR_RETURN(standby->pid, launcher::StartProcess(process));
    // Its number may be another process's after that, and a child that it has left may hold the channel open.
    reaper_.Watch(standby->pid, [weak = weak_from_this(), rank](const launcher::Reaped& reaped) {
      auto self = weak.lock();
      if (!self || self->seats_[rank].pid != reaped.pid) return;
      self->Failed(self->seats_[rank]);
      self->Look();
    });
    standby->output->Started();
    standby->channel->Started();
    standby->seat.standby = Seat::Standby::kImporting;
    standby->seat.imports = 0;
    standby->seat.limit = MonotonicClock::now() + kImportLimit;
    LookAt(standby->seat.limit);
    return absl::OkStatus();
  }

  // Names the modules that the standby has not been told.
  void Tell(Standby& standby) {
    std::vector<std::string> parts = {ScriptFolder(options_.command)};
    const std::vector<std::string>& names = imports_.names();
    parts.insert(parts.end(), names.begin() + static_cast<std::ptrdiff_t>(standby.seat.imports), names.end());
    standby.seat.standby = Seat::Standby::kImporting;
    standby.seat.imports = names.size();
    standby.seat.limit = MonotonicClock::now() + kImportLimit;
    const std::string frame = Encode(Letter::kImport, JoinParts(parts));
    if (!standby.channel->Send(frame, {}, MonotonicClock::now() + kSendLimit).ok()) Failed(standby);
    Look();
  }

  void OnFrame(Standby& standby, const Frame& frame) {
    switch (frame.letter) {
      case Letter::kHello:
        if (!IsFrom(frame, standby.pid)) return Off("another process than the worker's reads Python's settings");
        return Tell(standby);
      case Letter::kReady:
        standby.seat.standby = Seat::Standby::kReady;
        standby.was_ready = true;
        standby.seat.failures = 0;
        view_.standby_memory = PrivateMemory(standby.pid).value_or(kUnknownMemory);
        log::Debug("a standby worker is ready", {{"pid", std::to_string(standby.pid)},
                                                 {"modules", frame.body},
                                                 {"private_bytes", std::to_string(view_.standby_memory)}});
        return Look();
      case Letter::kUnfit:
        return Unfit(frame);
      case Letter::kImport:
      case Letter::kPing:
      case Letter::kStart:
      case Letter::kNames:
        return;
    }
  }

  // The other standbys have imported the module, too: all are recreated.
  void Unfit(const Frame& frame) {
    const std::string module = frame.body.substr(0, frame.body.find('\0'));
    const std::string does = frame.body.substr(std::min(frame.body.size(), module.size() + 1));
    if (module.empty()) return Off("Python's start " + does);
    if (!imports_.LeaveOut(module)) return Off(fmt::format("importing {} {}, as do many others", module, does));
    log::Info(fmt::format("standby workers do not import {} from now on: importing it {}", module, does));
    view_.imports = imports_.names().size();
    for (Standby& standby : seats_) Discard(standby);
    Look();
  }

  void Failed(Standby& standby) {
    const int failures = standby.seat.failures + 1;
    Discard(standby);
    standby.seat.failures = failures;
    standby.seat.failed = MonotonicClock::now();
  }

  void Discard(Standby& standby) {
    if (standby.pid != -1) kill(-standby.pid, SIGKILL);
    standby = Standby();
  }

  // --- using them ---

  void UseStandby(size_t rank, launcher::WorkerSpec* worker) {
    used_.push_back(std::exchange(seats_[rank], Standby()));
    const size_t place = used_.size() - 1;
    worker->marks = used_.back().like.environment;
    worker->start = [this, place,
                     environment = worker->environment](const launcher::ProcessSpec& process) -> StatusOr<pid_t> {
      Standby& standby = used_[place];
      const auto or_inherited = [](int descriptor, int inherited) { return descriptor == -1 ? inherited : descriptor; };
      std::string block;
      for (const std::string& entry : environment) block.append(entry).push_back('\0');
      const Status sent = standby.channel->Send(
          Encode(Letter::kStart, block),
          {or_inherited(process.in, 0), or_inherited(process.out, 1), or_inherited(process.err, 2)},
          MonotonicClock::now() + kSendLimit);
      if (!sent.ok()) {
        log::Debug(fmt::format("a standby worker cannot be started: {}", Message(sent)));
        Discard(standby);
        return launcher::StartProcess(process);
      }
      ++from_standby_;
      standby.channel.reset();
      return std::exchange(standby.pid, -1);
    };
  }

  boost::asio::io_context& loop_;
  launcher::Reaper& reaper_;
  const RunOptions& options_;
  boost::asio::steady_timer timer_;
  Descriptor archive_;
  View view_;
  std::vector<Standby> seats_;        // by local rank
  std::vector<Likeness> likenesses_;  // of the workers of the last round, by local rank
  std::vector<Standby> used_;         // by the start under way
  std::unique_ptr<PythonChannel> learner_;
  pid_t learner_pid_ = -1;
  int tries_ = 0;
  bool seen_ = false;     // a worker's Python has run sitecustomize.py
  bool learned_ = false;  // from a worker
  Imports imports_;
  int from_standby_ = 0;
};

Standbys::Standbys(boost::asio::io_context& loop, launcher::Reaper& reaper, const RunOptions& options)
    : impl_(std::make_shared<Impl>(loop, reaper, options)) {}
Standbys::~Standbys() { impl_->Close(); }
void Standbys::Prepare(std::vector<launcher::WorkerSpec>* workers) { impl_->Prepare(workers); }
int Standbys::WorkersRun() { return impl_->WorkersRun(); }
void Standbys::RoundEnds() { impl_->RoundEnds(); }
int Standbys::ready() const { return impl_->ready(); }

}  // namespace muster::agent::standby

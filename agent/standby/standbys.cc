// SPDX-License-Identifier: Apache-2.0
#include "agent/standby/standbys.h"

#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <boost/asio/steady_timer.hpp>
#include <set>

#include "agent/standby/learning.h"
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

// How long all standbys of a node together may take to answer before a start: they look at each file that they have
// imported, some thousands, and finish the import of a module. One that is stopped, or that the kernel has swapped out,
// is replaced by a cold start.
constexpr Duration kAnswerLimit = std::chrono::seconds(2);
constexpr Duration kSendLimit = std::chrono::seconds(1);
constexpr Duration kEndLimit = std::chrono::seconds(2);  // for all of them together, after SIGKILL

// What a worker has that does not change from round to round.
struct Likeness {
  std::vector<std::string> argv, environment, of_round;
  bool operator==(const Likeness&) const = default;
};
Likeness LikenessOf(const launcher::WorkerSpec& spec) {
  return {spec.argv, LocalPart(spec.environment), NamesOfRound(spec.environment)};
}

// A standby or a probe. Destroying it ends the process.
struct Process {
  Process() = default;
  ~Process() {
    if (pid != -1) kill(-pid, SIGKILL);
  }
  Process(const Process&) = delete;
  Process& operator=(const Process&) = delete;

  pid_t pid = -1;
  Likeness like;
  std::unique_ptr<PythonChannel> channel;
  std::unique_ptr<StandbyOutput> output;
  bool closed = false;             // the other end of `channel`
  std::optional<int> wait_status;  // it has ended
};

// Of a local rank.
struct Place {
  Seat seat;
  std::unique_ptr<Process> process;  // unless seat.standby is kNone
};

constexpr const char* kNoPath = "the workers' Python reads no PYTHONPATH (-E, -I, -S), or is a child of them";

}  // namespace

class Standbys::Impl : public std::enable_shared_from_this<Impl> {
 public:
  Impl(boost::asio::io_context& loop, launcher::Reaper& reaper, const RunOptions& options, Events events)
      : loop_(loop),
        reaper_(reaper),
        options_(options),
        events_(std::move(events)),
        timer_(loop),
        learning_(loop, options, {.told = [this] { Look(); }, .replaced = [this] { EmptyStandbys(); }}) {
    const auto why_none = WhyNone(options);
    view_.on = options.standby.wanted && !why_none;
    if (options.standby.wanted && why_none) log::Debug(fmt::format("no standby workers: {}", *why_none));
    view_.memory = [] { return FreeMemory(); };
  }

  void Close() {
    timer_.cancel();
    learning_.Keep();
    learning_.Stop();
    places_.clear();
    reaper_.AwaitGroups({left_.begin(), left_.end()}, MonotonicClock::now() + kEndLimit);
  }

  void Wait(const std::vector<launcher::WorkerSpec>& workers) {
    if (!view_.on || !OpenArchive()) return;
    NoteWorkers(workers);
    waits_ = true;
    SetPreparing(true);
    view_.quiet = MonotonicClock::now();
    Look();
  }

  void Hear(const std::string& names) {
    if (view_.on) learning_.HearNode(SplitParts(names));
    Look();
  }
  bool wants_imports() const { return view_.on && learning_.wants_imports(); }

  void Prepare(std::vector<launcher::WorkerSpec>* workers) {
    RoundEnds();
    from_standby_ = 0;
    learning_.Stop();
    if (learning_.unseen()) Off(kNoPath);
    if (!view_.on || !OpenArchive()) return;
    NoteWorkers(*workers);
    const TimePoint deadline = MonotonicClock::now() + kAnswerLimit;
    for (Place& place : places_) {
      if (!place.process) continue;
      if (!place.seat.ready() || !place.process->channel->Send(Encode(Letter::kPing), {}, deadline).ok()) Empty(place);
    }
    for (size_t rank = 0; rank < workers->size(); ++rank) {
      Place& place = places_[rank];
      if (!place.process) continue;
      if (const Status answer = place.process->channel->AwaitAnswer(deadline); answer.ok()) {
        UseStandby(place, &(*workers)[rank], rank == 0 && learning_.wants_worker());
      } else {
        log::Debug(fmt::format("a standby worker is not used: {}", Message(answer)),
                   {{"pid", std::to_string(place.process->pid)}});
        Empty(place);
      }
    }
    if (learning_.wants_worker() && !workers->empty() && !workers->front().start) {
      learning_.Ask(&workers->front(), archive_.get());
    }
  }

  int WorkersRun() {
    waits_ = hurries_ = false;
    SetPreparing(view_.on);
    view_.quiet = MonotonicClock::now();
    Look();
    return from_standby_;
  }

  void Hurry() {
    if (!view_.on || !view_.quiet) return;
    hurries_ = true;
    Look();
  }

  bool on() const { return view_.on; }
  int ready() const {
    return static_cast<int>(
        std::count_if(places_.begin(), places_.end(), [](const Place& place) { return place.seat.ready(); }));
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
    places_.clear();
    SetPreparing(false);
  }

  // One place for each worker. A standby that is not like its worker goes.
  void NoteWorkers(const std::vector<launcher::WorkerSpec>& workers) {
    likenesses_.clear();
    for (const launcher::WorkerSpec& worker : workers) likenesses_.push_back(LikenessOf(worker));
    places_.resize(workers.size());
    for (size_t rank = 0; rank < places_.size(); ++rank) {
      Place& place = places_[rank];
      if (place.process && place.process->like != likenesses_[rank]) Empty(place);
    }
  }

  // --- making standbys ---

  void Look() {
    if (!view_.on || !view_.quiet) return;
    view_.imports = learning_.names().size();
    view_.seats.clear();
    for (const Place& place : places_) view_.seats.push_back(place.seat);
    view_.at_once = waits_ || hurries_ ? cpus_ : 1;
    const Duration delay = hurries_ ? Duration::zero() : waits_ ? kWaitDelay : options_.standby.delay;
    const TimePoint now = MonotonicClock::now();
    const Step step = NextStep(view_, delay, now);
    if (IsPrepared(view_, step, delay, now)) SetPreparing(false);
    switch (step.kind) {
      case Step::Kind::kNothing:
        return;
      case Step::Kind::kLater:
        return LookAt(step.at);
      case Step::Kind::kProbe:
      case Step::Kind::kStart:
        return Make(static_cast<size_t>(step.local_rank), step.kind == Step::Kind::kProbe);
      case Step::Kind::kMore:
        return Tell(places_[static_cast<size_t>(step.local_rank)]);
      case Step::Kind::kEnd: {
        Place& late = places_[static_cast<size_t>(step.local_rank)];
        log::Debug("a standby worker is given up: its imports take too long",
                   {{"pid", std::to_string(late.process->pid)}});
        Failed(late);
        return Look();
      }
    }
  }

  void SetPreparing(bool preparing) {
    if (std::exchange(preparing_, preparing) != preparing) events_.preparing(preparing);
  }

  void LookAt(TimePoint when) {
    timer_.expires_at(when);
    timer_.async_wait([weak = weak_from_this()](boost::system::error_code cancelled) {
      auto self = weak.lock();
      if (!self || cancelled) return;
      self->Look();
    });
  }

  void Make(size_t rank, bool probe) {
    Place& place = places_[rank];
    if (Status status = Begin(rank, probe); !status.ok()) {
      log::Debug(fmt::format("a standby for local rank {} cannot be made: {}", rank, Message(status)));
      Failed(place);
    }
    Look();
  }

  Status Begin(size_t rank, bool probe) {
    Place& place = places_[rank];
    place.process = std::make_unique<Process>();
    Process& made = *place.process;
    PythonChannel::Events events;
    events.frame = [this, rank, probe](const Frame& frame) {
      probe ? OnProbe(places_[rank], frame) : OnStandby(places_[rank], frame);
    };
    events.ended = [this, rank](const Status&) { OnEnd(places_[rank], [](Process& ended) { ended.closed = true; }); };
    MUSTER_ASSIGN_OR_RETURN(made.channel, PythonChannel::Open(loop_, std::move(events)));
    MUSTER_ASSIGN_OR_RETURN(made.output, StandbyOutput::Open(loop_, static_cast<int>(rank)));
    made.like = likenesses_[rank];
    PythonStart start = made.channel->StartWith(made.like.environment, probe ? Mode::kProbe : Mode::kWait,
                                                archive_.get(), made.like.of_round);
    launcher::ProcessSpec process;
    process.argv = probe ? ProbeCommand(made.like.argv) : made.like.argv;
    process.environment = std::move(start.environment);
    process.kept = std::move(start.descriptors);
    process.out = process.err = made.output->writing();
    MUSTER_ASSIGN_OR_RETURN(made.pid, launcher::StartProcess(process));
    left_.insert(made.pid);
    // Its number may be another process's after that, and a child that it has left may hold the channel open.
    reaper_.Watch(made.pid, [weak = weak_from_this(), rank](const launcher::Reaped& reaped) {
      auto self = weak.lock();
      if (!self) return;
      self->left_.erase(reaped.pid);
      if (rank >= self->places_.size()) return;
      Place& place = self->places_[rank];
      if (!place.process || place.process->pid != reaped.pid) return;
      self->OnEnd(place, [&reaped](Process& ended) { ended.wait_status = reaped.wait_status; });
    });
    made.output->Started();
    made.channel->Started();
    place.seat.standby = probe ? Seat::Standby::kProbing : Seat::Standby::kImporting;
    place.seat.imports = 0;
    place.seat.limit = MonotonicClock::now() + (probe ? kProbeLimit : kImportLimit);
    return absl::OkStatus();
  }

  // The process has ended, or has closed the channel. What a probe has sent is read before its end counts.
  void OnEnd(Place& place, const std::function<void(Process&)>& note) {
    Process& process = *place.process;
    note(process);
    if (place.seat.standby == Seat::Standby::kProbing) {
      if (!process.closed || !process.wait_status) return;
      if (!place.seat.proven && !WIFSIGNALED(*process.wait_status)) return Off(kNoPath);
      place.seat.proven ? Empty(place) : Failed(place);
    } else {
      Failed(place);
    }
    Look();
  }

  void OnProbe(Place& place, const Frame& frame) {
    switch (frame.letter) {
      case Letter::kHello: {
        if (!IsHelloOf(frame, place.process->pid)) return Off(kNoPath);
        place.seat.proven = true;
        const RunOptions::Command& command = options_.command;
        const std::string look = Encode(
            Letter::kLook, JoinParts({ScriptFolder(command), command.module ? "module" : "script", command.script}));
        if (!place.process->channel->Send(look, {}, MonotonicClock::now() + kSendLimit).ok()) Failed(place);
        return Look();
      }
      case Letter::kVersions:
        return learning_.HearFacts(ParseScriptFacts(frame.body));
      case Letter::kNames:
        return learning_.HearText(SplitParts(frame.body));
      case Letter::kReady:
      case Letter::kUnfit:
      case Letter::kEnd:
      case Letter::kImport:
      case Letter::kLook:
      case Letter::kPing:
      case Letter::kStart:
      case Letter::kStartAndLearn:
        return;
    }
  }

  // Names the modules that the standby has not been told.
  void Tell(Place& place) {
    std::vector<std::string> parts = {ScriptFolder(options_.command)};
    const std::vector<std::string>& names = learning_.names();
    parts.insert(parts.end(), names.begin() + static_cast<std::ptrdiff_t>(place.seat.imports), names.end());
    if (place.seat.standby == Seat::Standby::kReady) place.seat.standby = Seat::Standby::kMore;
    place.seat.imports = names.size();
    place.seat.limit = MonotonicClock::now() + kImportLimit;
    const std::string frame = Encode(Letter::kImport, JoinParts(parts));
    if (!place.process->channel->Send(frame, {}, MonotonicClock::now() + kSendLimit).ok()) Failed(place);
    Look();
  }

  void OnStandby(Place& place, const Frame& frame) {
    switch (frame.letter) {
      case Letter::kHello:
        if (!IsHelloOf(frame, place.process->pid)) {
          return Off("another process than the worker's reads Python's settings");
        }
        return Tell(place);
      case Letter::kReady:
        place.seat.standby = Seat::Standby::kReady;
        place.seat.failures = 0;
        // Before the delay is over the worker may import more.
        if (!waits_ && learning_.from_worker() && view_.quiet &&
            MonotonicClock::now() >= *view_.quiet + options_.standby.delay) {
          learning_.Complete();
        }
        if (!waits_ && learning_.from_run()) events_.learned(JoinParts(learning_.names()));
        view_.standby_memory = PrivateMemory(place.process->pid).value_or(kUnknownMemory);
        log::Debug("a standby worker is ready", {{"pid", std::to_string(place.process->pid)},
                                                 {"modules", frame.body},
                                                 {"private_bytes", std::to_string(view_.standby_memory)}});
        learning_.Keep();
        return Look();
      case Letter::kUnfit:
      case Letter::kEnd:
        return Unfit(frame);
      case Letter::kVersions:
      case Letter::kImport:
      case Letter::kLook:
      case Letter::kPing:
      case Letter::kStart:
      case Letter::kStartAndLearn:
      case Letter::kNames:
        return;
    }
  }

  // The other standbys have imported the module, too: all are recreated.
  void Unfit(const Frame& frame) {
    const std::string module = frame.body.substr(0, frame.body.find('\0'));
    const std::string does = frame.body.substr(std::min(frame.body.size(), module.size() + 1));
    if (module.empty()) return Off("Python's start " + does);
    if (!learning_.LeaveOut(frame.letter, module, does)) {
      return Off(fmt::format("importing {} {}, as do many others", module, does));
    }
    EmptyStandbys();
    Look();
  }

  void EmptyStandbys() {
    for (Place& place : places_) {
      if (place.seat.standby != Seat::Standby::kProbing) Empty(place);
    }
  }

  static void Failed(Place& place) {
    const int failures = place.seat.failures + 1;
    Empty(place);
    place.seat.failures = failures;
    place.seat.failed = MonotonicClock::now();
  }

  static void Empty(Place& place) {
    place.process.reset();
    place.seat = Seat{.proven = place.seat.proven};
  }

  // --- using them ---

  void UseStandby(Place& place, launcher::WorkerSpec* worker, bool learn) {
    std::shared_ptr<Process> used = std::move(place.process);
    Empty(place);
    used->channel->Redirect({});
    worker->marks = used->like.environment;
    worker->start = [this, used, learn,
                     environment = worker->environment](const launcher::ProcessSpec& process) -> StatusOr<pid_t> {
      const auto or_inherited = [](int descriptor, int inherited) { return descriptor == -1 ? inherited : descriptor; };
      std::string block;
      for (const std::string& entry : environment) block.append(entry).push_back('\0');
      const Status sent =
          used->channel->Send(Encode(learn ? Letter::kStartAndLearn : Letter::kStart, block),
                              {or_inherited(process.in, 0), or_inherited(process.out, 1), or_inherited(process.err, 2)},
                              MonotonicClock::now() + kSendLimit);
      if (!sent.ok()) {
        log::Debug(fmt::format("a standby worker cannot be started: {}", Message(sent)));
        return launcher::StartProcess(process);
      }
      ++from_standby_;
      const pid_t pid = std::exchange(used->pid, -1);
      left_.erase(pid);  // it is a worker now
      if (learn) learning_.Follow(std::move(used->channel), pid);
      return pid;
    };
  }

  boost::asio::io_context& loop_;
  launcher::Reaper& reaper_;
  const RunOptions& options_;
  const Events events_;
  boost::asio::steady_timer timer_;
  const int cpus_ = static_cast<int>(UsableCpus().size());
  Descriptor archive_;
  View view_;
  bool waits_ = false;                // for a round
  bool hurries_ = false;              // asked to make them now
  bool preparing_ = false;            // something is left to import
  std::vector<Place> places_;         // by local rank
  std::set<pid_t> left_;              // standbys and probes that are not reaped yet
  std::vector<Likeness> likenesses_;  // of the workers of this round or the next, by local rank
  Learning learning_;
  int from_standby_ = 0;
};

Standbys::Standbys(boost::asio::io_context& loop, launcher::Reaper& reaper, const RunOptions& options, Events events)
    : impl_(std::make_shared<Impl>(loop, reaper, options, std::move(events))) {}
Standbys::~Standbys() { impl_->Close(); }
void Standbys::Wait(const std::vector<launcher::WorkerSpec>& workers) { impl_->Wait(workers); }
void Standbys::Hear(const std::string& names) { impl_->Hear(names); }
bool Standbys::wants_imports() const { return impl_->wants_imports(); }
void Standbys::Prepare(std::vector<launcher::WorkerSpec>* workers) { impl_->Prepare(workers); }
int Standbys::WorkersRun() { return impl_->WorkersRun(); }
void Standbys::Hurry() { impl_->Hurry(); }
void Standbys::RoundEnds() { impl_->RoundEnds(); }
bool Standbys::on() const { return impl_->on(); }
int Standbys::ready() const { return impl_->ready(); }

}  // namespace muster::agent::standby

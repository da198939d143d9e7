// SPDX-License-Identifier: Apache-2.0
#include "rendezvous/attendance.h"

#include <utility>

#include "base/host_names.h"
#include "base/text.h"
#include "base/version.h"
#include "rendezvous/attendance_machine.h"

namespace muster::rendezvous::attendance {

void Machine::On(const Begin&) {
  if (s_.alone_since) return;
  s_.alone_since = now_;
  DialTo(s_.endpoint);
}

void Machine::On(const Connected&) {
  if (s_.stage != Stage::kDialling || s_.dial_at) return;
  s_.stage = Stage::kGreeting;
  s_.linked = true;
  s_.unanswered = 0;
  s_.leased = false;
  s_.answered = now_;
  s_.stale.reset();
  s_.dial_until.reset();
  s_.last_heard = now_;
  s_.beat_at = now_ + Interval();
  Send(Greeting());
}

void Machine::On(const Disconnected& event) {
  s_.linked = false;
  if (s_.stage == Stage::kEnded) return;
  if (s_.stage == Stage::kAttending) {
    LoseCoordinator(event.detail);
  } else if (s_.stage == Stage::kGreeting || !s_.dial_at) {
    DialFailed(event.loss, event.detail);
  }
}

void Machine::On(const Heard& event) {
  if (s_.stage != Stage::kGreeting && s_.stage != Stage::kAttending) return;
  s_.last_heard = now_;
  if (const auto* beat = std::get_if<Beat>(&event.message)) Answered(*beat);
  if (!s_.stale) s_.last_word = now_;
  std::visit([this](const auto& message) { Hear(message); }, event.message);
}

void Machine::On(const WorkersEnded& event) {
  if (!s_.round || event.report.round != s_.round->id || s_.doing != NodeState::kRunning) return;
  s_.doing = event.report.failures.empty() ? NodeState::kSucceeded : NodeState::kStopping;
  s_.report = event.report;
  if (Talking()) Send(event.report);
}

void Machine::On(const NoWorkerLeft& event) {
  s_.self.store_port = event.store_port;
  if (!s_.round) return;
  s_.doing = NodeState::kIdle;
  if (!Talking()) return;
  if (!event.late.empty()) Send(Report{s_.round->id, event.late, {}, {}});
  Send(Ready{s_.round->id, event.store_port, event.progress, s_.cut_off});
}

void Machine::On(const Silence& event) {
  if (s_.silent == event.silent || s_.doing != NodeState::kRunning) return;
  s_.silent = event.silent;
  if (s_.stage == Stage::kAttending) SayBeat();
}

void Machine::On(const Prepares& event) {
  if (s_.preparing == event.preparing) return;
  s_.preparing = event.preparing;
  if (Talking()) SayBeat();
}

void Machine::On(const Over&) { s_.over = true; }  // CheckDeadlines does the rest

void Machine::On(const ShareImports& event) {
  if (event.names.empty()) {
    s_.wants_imports = true;
  } else {
    s_.imports = event.names;
  }
  if (s_.stage == Stage::kAttending && s_.may_share) Send(Imports{event.names});
}

void Machine::On(const Probed& event) {
  if (!s_.standing_in || !s_.round || !Fresh()) return;
  if (event.loss == Loss::kRefused) {
    out_.actions.push_back(TellDead{event.name});
  } else if (event.loss == Loss::kClosed) {
    ProbeMissing(event.name);
  }
}

void Machine::On(const Hosting&) {
  if (s_.stage != Stage::kDialling || s_.round) return;
  s_.may_host = false;
  s_.endpoint.clear();
  SayOnce("no agent serves the endpoint any more: this node serves it from now on");
  DialTo(s_.endpoint);
}

void Machine::On(const Going& event) {
  if (s_.stage == Stage::kEnded) return;
  s_.left = true;
  if (Talking()) Send(Leave{event.reason, event.cause});
  Finish(kExitStopped, fmt::format("this node leaves the job: {}", event.reason));
}

// The run is over, no worker runs here, and no coordinator decides about this node.
bool Machine::HasNothingToDo() const {
  const bool failed = s_.report && !s_.report->failures.empty();
  return s_.over && !MayHaveWorkers() && !failed && s_.stage != Stage::kAttending;
}

void Machine::NoticeFreeze() {
  if (Frozen()) s_.stale = s_.unanswered;
}

void Machine::CheckDeadlines() {
  if (Frozen()) {
    s_.last_heard = std::max(s_.last_heard, now_ - Limit() + Limit() / 3);
  }
  if (s_.stage == Stage::kEnded) {
    if (s_.left && s_.linked) BeatWhenDue();
    return;
  }
  if (s_.linked && now_ >= s_.last_heard + Limit()) {
    Send(Doubt{});
    s_.linked = false;
    out_.actions.push_back(HangUp{});
    std::string detail = fmt::format("{} was silent for {} s", Where(s_.target), Whole(Limit()));
    if (s_.stage == Stage::kAttending) {
      LoseCoordinator(detail);
    } else {
      DialFailed(Loss::kSilent, detail);
    }
  }
  FenceWhenDue();
  if (HasNothingToDo()) return Finish(0, kRunIsOver);
  if (s_.linked) BeatWhenDue();
  if (s_.stage == Stage::kDialling && s_.dial_until && now_ >= *s_.dial_until) {
    out_.actions.push_back(HangUp{});
    DialFailed(Loss::kUnreachable, fmt::format("{}: no answer", Where(s_.target)));
  }
  if (s_.stage == Stage::kDialling && s_.dial_at && now_ >= *s_.dial_at) DialTo(s_.target);
  if (s_.stage != Stage::kAttending && s_.stage != Stage::kEnded && now_ >= GiveUpAt()) GiveUp();
}

void Machine::ScheduleLook() {
  std::optional<TimePoint> look;
  if (s_.stage == Stage::kEnded) {
    if (s_.left && s_.linked) look = s_.beat_at;
  } else {
    if (s_.linked) look = Earlier(s_.beat_at, s_.last_heard + Limit());
    if (s_.stage == Stage::kDialling) look = Earlier(Earlier(look, s_.dial_until), s_.dial_at);
    if (s_.stage != Stage::kAttending && s_.alone_since) look = Earlier(look, GiveUpAt());
    if (s_.round && MayHaveWorkers() && s_.leases && !s_.fenced) look = Earlier(look, s_.lease + LeaseTime());
  }
  out_.look_again = look;
  s_.expected = look;
}

void Machine::SayOnce(const std::string& text) {
  if (s_.said.insert(text).second) out_.actions.push_back(Say{text});
}

double Machine::Whole(Duration duration) {
  return static_cast<double>(std::chrono::duration_cast<std::chrono::milliseconds>(duration).count()) / 1000;
}

Hello Machine::Greeting() const {
  Hello hello;
  hello.protocol = kRendezvousProtocol;
  hello.version = std::string(Version());
  hello.run_id = s_.run_id;
  hello.node = s_.self;
  hello.options = s_.options;
  hello.state = s_.doing;
  hello.resume = s_.round;
  hello.report = s_.report;
  hello.term = s_.known_term;
  hello.preparing = s_.preparing;
  hello.tells_telemetry = true;
  return hello;
}

void Machine::BeatWhenDue() {
  if (!s_.beat_at || now_ < *s_.beat_at) return;
  SayBeat();
}

void Machine::Answered(const Beat& beat) {
  s_.unanswered = std::max(0, s_.unanswered - 1);
  const TimePoint sent{Duration(beat.stamp)};
  if (sent <= now_) s_.answered = std::max(s_.answered, sent);
  s_.leased = beat.lease;
  if (s_.leased) s_.lease = std::max(s_.lease, s_.answered);
  if (!s_.stale) return;
  *s_.stale > 0 ? void(--*s_.stale) : s_.stale.reset();
}

void Machine::SayBeat() {
  ++s_.unanswered;
  Send(Beat{s_.round ? s_.round->id : RoundId{}, s_.silent, s_.preparing, now_.time_since_epoch().count()});
  s_.beat_at = now_ + Interval();
}

bool Machine::NeedsNoFence() const {
  std::string host = s_.target.substr(0, s_.target.rfind(':'));
  if (host.starts_with('[')) host = host.substr(1, host.size() - 2);
  const bool here = s_.target.empty() ? s_.leased : IsLoopbackHost(host);
  return here || (s_.coordinator_proven_dead && s_.options.min_nodes == s_.options.max_nodes);
}

void Machine::FenceWhenDue() {
  if (!s_.round || !MayHaveWorkers() || !s_.leases || s_.fenced) return;
  if (NeedsNoFence()) s_.lease = now_;
  if (now_ < s_.lease + LeaseTime()) return;
  out_.reason =
      fmt::format("no coordinator has answered for {} s: a round may start without this node", Whole(LeaseTime()));
  SayOnce(out_.reason + "; the workers are stopped");
  s_.cut_off = true;
  StopAtOnce(out_.reason, RoundCause::kMembership);
}

void Machine::StopAtOnce(const std::string& reason, RoundCause cause) {
  if (std::exchange(s_.fenced, true)) return;
  s_.doing = NodeState::kStopping;
  out_.actions.push_back(StopRound{s_.round->id, reason, cause, false, Limit() / 10});
}

void Machine::Finished(Verdict verdict) {
  s_.stage = Stage::kEnded;
  s_.dial_at.reset();
  s_.dial_until.reset();
  out_.reason = verdict.reason;
  out_.actions.push_back(End{std::move(verdict)});
}

void Machine::Hear(const Welcome& welcome) {
  if (s_.stage != Stage::kGreeting) return;
  s_.stage = Stage::kAttending;
  s_.was_welcomed = true;
  s_.coordinator = s_.target;
  s_.term = welcome.term;
  HearOf(welcome.term);
  s_.attempt = 0;
  s_.alone_since.reset();
  s_.walking.reset();
  s_.coordinator_proven_dead = s_.proof = false;
  s_.dead.clear();
  s_.said.clear();
  if (welcome.beat_interval > Duration{}) s_.beat_interval = welcome.beat_interval;
  s_.beat_at = now_ + Interval();
  if (!s_.target.empty()) s_.standing_in = false;
  s_.may_share = welcome.imports;
  s_.leases = welcome.leases;
  if (s_.round && welcome.node) s_.round->coordinator_node = *welcome.node;  // another one may have made the round
  if (s_.may_share && !s_.imports.empty()) Send(Imports{s_.imports});
  if (s_.may_share && s_.wants_imports) Send(Imports{});
  if (s_.round) SayBeat();  // a stand-in counts the nodes from their first message after the Welcome on
}

void Machine::Hear(const Beat& beat) {
  if (!beat.silent || !s_.silent || !s_.round || beat.round != s_.round->id) return;
  if (s_.doing == NodeState::kRunning) out_.actions.push_back(AllSilent{});
}

void Machine::Hear(const Notice& notice) {
  if (notice.prepare && s_.doing == NodeState::kRunning) out_.actions.push_back(PrepareNow{});
  if (notice.text == s_.last_notice) return;
  s_.last_notice = notice.text;
  out_.reason = notice.text;
  out_.actions.push_back(Say{notice.text});
}

void Machine::Hear(const Start& start) {
  if (s_.stage != Stage::kAttending || (s_.round && start.assignment.id <= s_.round->id)) return;
  if (s_.doing != NodeState::kIdle) {
    // The coordinator believes that no worker is left here. A new Hello corrects this.
    Again();
    return;
  }
  const bool late = s_.leases && !s_.target.empty() && now_ >= s_.answered + LeaseTime();
  if (late) {  // it has waited in the socket: the round may have gone on without this node
    Again();
    return;
  }
  s_.round = start.assignment;
  HearOf(start.assignment.id.term);
  s_.outdated = false;
  s_.doing = NodeState::kRunning;
  s_.leased = true;
  s_.lease = s_.answered;
  s_.fenced = s_.cut_off = false;
  s_.silent = s_.wants_imports = false;
  s_.report.reset();
  s_.last_notice.clear();
  out_.reason = start.assignment.reason;
  out_.actions.push_back(StartRound{start.assignment});
}

void Machine::Hear(const Stop& stop) {
  if (!s_.round || stop.round < s_.round->id) return;
  s_.report.reset();
  if (stop.round > s_.round->id) s_.outdated = true;
  if ((stop.at_once || s_.outdated) && MayHaveWorkers()) return StopAtOnce(stop.reason, stop.cause);
  if (s_.doing == NodeState::kRunning || s_.doing == NodeState::kSucceeded) {
    s_.doing = NodeState::kStopping;
    out_.reason = stop.reason;
    out_.actions.push_back(StopRound{s_.round->id, stop.reason, stop.cause, stop.keep_evidence});
  } else if (s_.doing == NodeState::kIdle) {
    Send(Ready{s_.round->id, s_.self.store_port, std::nullopt, s_.cut_off});
  }
}

void Machine::Hear(const rendezvous::Finish& finish) {
  if (s_.round && finish.term < s_.round->id.term) return;
  Finished(finish.verdict);
}

void Machine::Hear(const Refuse& refuse) {
  if (s_.walking) {  // an agent of another job has that address now
    out_.actions.push_back(HangUp{});
    DialFailed(Loss::kUnreachable, refuse.reason);
    return;
  }
  s_.linked = false;
  out_.actions.push_back(HangUp{});
  Finished({refuse.exit_code, refuse.reason, std::nullopt, {}});
}

void Machine::Hear(const Redirect& redirect) {
  bool newer = redirect.term > s_.term || (s_.stage == Stage::kGreeting && redirect.term == s_.term);
  HearOf(redirect.term);
  if (!newer || redirect.address == s_.target) return;
  if (!s_.alone_since) s_.alone_since = now_;
  if (s_.stage == Stage::kAttending) {
    s_.coordinator_heard = now_;
    s_.lost_word = s_.last_word;
  }
  s_.walking.reset();
  s_.standing_in = false;
  if (redirect.address == s_.self.control_address) return;  // it names this agent, which does not coordinate
  out_.reason = fmt::format("the job is coordinated at {} now", redirect.address);
  DialTo(redirect.address);
}

void Machine::Hear(const Imports& imports) {
  if (!std::exchange(s_.wants_imports, false)) return;
  out_.actions.push_back(GiveImports{imports.names});
}

void Machine::Hear(const TelemetryWanted&) { out_.actions.push_back(WantTelemetry{}); }

void Machine::Again() {
  out_.actions.push_back(HangUp{});
  s_.alone_since = now_;
  s_.coordinator_heard = now_;
  s_.lost_word = s_.last_word;
  DialTo(s_.target);
}

Effects Apply(State& state, const Event& event, TimePoint now) {
  Effects effects;
  Machine machine(state, now, effects);
  machine.NoticeFreeze();
  std::visit([&machine](const auto& happened) { machine.On(happened); }, event);
  machine.CheckDeadlines();
  machine.ScheduleLook();
  return effects;
}

}  // namespace muster::rendezvous::attendance

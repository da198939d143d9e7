#include "rendezvous/attendance.h"

#include <algorithm>
#include <utility>

#include "base/host_names.h"
#include "base/not_yet.h"
#include "base/text.h"
#include "base/version.h"

namespace muster::rendezvous::attendance {
namespace {

constexpr Duration kFirstDelay = std::chrono::milliseconds(20);
constexpr Duration kLongestDelay = std::chrono::seconds(1);
constexpr int kMostProbes = 8 * static_cast<int>(kMaxSuccessors);

class Machine {
 public:
  Machine(State& state, TimePoint now, Effects& effects) : s_(state), now_(now), out_(effects) {}

  void On(const Begin&) {
    if (s_.alone_since) return;
    s_.alone_since = now_;
    DialTo(s_.endpoint);
  }

  void On(const Connected&) {
    if (s_.stage != Stage::kDialling || s_.dial_at) return;
    s_.stage = Stage::kGreeting;
    s_.linked = true;
    s_.unanswered = 0;
    s_.stale.reset();
    s_.dial_until.reset();
    s_.last_heard = now_;
    s_.beat_at = now_ + Interval();
    Send(Greeting());
  }

  void On(const Disconnected& event) {
    s_.linked = false;
    if (s_.stage == Stage::kEnded) return;
    if (s_.stage == Stage::kAttending) {
      LoseCoordinator(event.detail);
    } else if (s_.stage == Stage::kGreeting || !s_.dial_at) {
      DialFailed(event.loss, event.detail);
    }
  }

  void On(const Heard& event) {
    if (s_.stage != Stage::kGreeting && s_.stage != Stage::kAttending) return;
    s_.last_heard = now_;
    if (std::holds_alternative<Beat>(event.message)) Answered();
    if (!s_.stale) s_.last_word = now_;
    std::visit([this](const auto& message) { Hear(message); }, event.message);
  }

  void On(const WorkersEnded& event) {
    if (!s_.round || event.report.round != s_.round->id || s_.doing != NodeState::kRunning) return;
    s_.doing = event.report.failures.empty() ? NodeState::kSucceeded : NodeState::kStopping;
    s_.report = event.report;
    if (Talking()) Send(event.report);
  }

  void On(const NoWorkerLeft& event) {
    s_.self.store_port = event.store_port;
    if (!s_.round) return;
    s_.doing = NodeState::kIdle;
    if (!Talking()) return;
    if (!event.late.empty()) Send(Report{s_.round->id, event.late, {}, {}});
    Send(Ready{s_.round->id, event.store_port, event.progress});
  }

  void On(const Silence& event) {
    if (s_.silent == event.silent || s_.doing != NodeState::kRunning) return;
    s_.silent = event.silent;
    if (s_.stage == Stage::kAttending) SayBeat();
  }

  void On(const Prepares& event) {
    if (s_.preparing == event.preparing) return;
    s_.preparing = event.preparing;
    if (Talking()) SayBeat();
  }

  void On(const ShareImports& event) {
    if (event.names.empty()) {
      s_.wants_imports = true;
    } else {
      s_.imports = event.names;
    }
    if (s_.stage == Stage::kAttending && s_.may_share) Send(Imports{event.names});
  }

  void On(const Probed& event) {
    if (!s_.standing_in || !s_.round || !Fresh()) return;
    if (event.loss == Loss::kRefused) {
      out_.actions.push_back(TellDead{event.name});
    } else if (event.loss == Loss::kClosed) {
      ProbeMissing(event.name);
    }
  }

  void On(const Hosting&) {
    if (s_.stage != Stage::kDialling || s_.round) return;
    s_.may_host = false;
    s_.endpoint.clear();
    SayOnce("no agent serves the endpoint any more: this node serves it from now on");
    DialTo(s_.endpoint);
  }

  void On(const Going& event) {
    if (s_.stage == Stage::kEnded) return;
    s_.left = true;
    if (Talking()) Send(Leave{event.reason, event.cause});
    Finished({kExitStopped, fmt::format("this node leaves the job: {}", event.reason), std::nullopt, {}});
  }

  void On(const Tick&) {}  // CheckDeadlines does the work

  // Called before the event is applied: its message may have waited in the socket while this process did not run.
  void NoticeFreeze() {
    if (Frozen()) s_.stale = s_.unanswered;
  }

  void CheckDeadlines() {
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
    if (s_.linked) BeatWhenDue();
    if (s_.stage == Stage::kDialling && s_.dial_until && now_ >= *s_.dial_until) {
      out_.actions.push_back(HangUp{});
      DialFailed(Loss::kUnreachable, fmt::format("{}: no answer", Where(s_.target)));
    }
    if (s_.stage == Stage::kDialling && s_.dial_at && now_ >= *s_.dial_at) DialTo(s_.target);
    if (s_.stage != Stage::kAttending && s_.stage != Stage::kEnded && now_ >= GiveUpAt()) GiveUp();
  }

  void ScheduleLook() {
    std::optional<TimePoint> look;
    if (s_.stage == Stage::kEnded) {
      if (s_.left && s_.linked) look = s_.beat_at;
    } else {
      if (s_.linked) look = Earlier(s_.beat_at, s_.last_heard + Limit());
      if (s_.stage == Stage::kDialling) look = Earlier(Earlier(look, s_.dial_until), s_.dial_at);
      if (s_.stage != Stage::kAttending && s_.alone_since) look = Earlier(look, GiveUpAt());
    }
    out_.look_again = look;
    s_.expected = look;
  }

 private:
  Duration Limit() const { return s_.options.heartbeat_timeout; }
  Duration Interval() const { return std::min(s_.beat_interval, Limit() / 3); }
  TimePoint GiveUpAt() const { return s_.alone_since.value_or(now_) + s_.options.join_timeout; }
  bool Frozen() const { return s_.expected && now_ > *s_.expected + Limit() / 3; }
  // True while the lost coordinator cannot have given this node up.
  bool Fresh() const { return now_ < s_.lost_word + Limit(); }
  bool Talking() const { return s_.stage == Stage::kGreeting || s_.stage == Stage::kAttending; }
  void Send(NodeMessage message) { out_.actions.push_back(attendance::Send{std::move(message)}); }
  void SayOnce(const std::string& text) {
    if (s_.said.insert(text).second) out_.actions.push_back(Say{text});
  }
  static std::string Where(const std::string& address) { return address.empty() ? "this agent" : address; }
  static double Whole(Duration duration) {
    return static_cast<double>(std::chrono::duration_cast<std::chrono::milliseconds>(duration).count()) / 1000;
  }

  Hello Greeting() const {
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
    return hello;
  }

  void BeatWhenDue() {
    if (!s_.beat_at || now_ < *s_.beat_at) return;
    SayBeat();
  }

  // Each beat has one answer, in order. The first answer to a beat from after the freeze shows that messages are new.
  void Answered() {
    s_.unanswered = std::max(0, s_.unanswered - 1);
    if (!s_.stale) return;
    *s_.stale > 0 ? void(--*s_.stale) : s_.stale.reset();
  }

  void SayBeat() {
    ++s_.unanswered;
    Send(Beat{s_.round ? s_.round->id : RoundId{}, s_.silent, s_.preparing});
    s_.beat_at = now_ + Interval();
  }

  void Finished(Verdict verdict) {
    s_.stage = Stage::kEnded;
    s_.dial_at.reset();
    s_.dial_until.reset();
    out_.reason = verdict.reason;
    out_.actions.push_back(End{std::move(verdict)});
  }

  void Finish(int code, const std::string& why) { Finished({code, why, std::nullopt, {}}); }

  void GiveUp() {
    if (s_.linked) out_.actions.push_back(HangUp{});
    s_.linked = false;
    std::string where = Where(s_.endpoint.empty() ? s_.coordinator : s_.endpoint);
    // Most failures name the address themselves.
    std::string why = s_.last_failure.empty()              ? fmt::format("{}: no answer", where)
                      : s_.last_failure.starts_with(where) ? s_.last_failure
                                                           : fmt::format("{}: {}", where, s_.last_failure);
    std::string limit = fmt::format("{} s", Whole(s_.options.join_timeout));
    if (s_.was_welcomed) {
      Finish(kExitCoordinatorLost,
             fmt::format("the coordinator was lost and none was found again within {}: {}", limit, why));
    } else {
      std::string hint = EndpointHint(where.substr(0, where.rfind(':')), {});
      Finish(kExitRendezvousTimeout,
             fmt::format("no coordinator was reached within {}: {}{}{}", limit, why, hint.empty() ? "" : "; ", hint));
    }
  }

  // --- dialling ---

  void DialTo(const std::string& address) {
    s_.stage = Stage::kDialling;
    s_.linked = false;
    s_.target = address;
    s_.dial_at.reset();
    s_.dial_until = now_ + (s_.walking ? Limit() / 3 : Limit());
    out_.actions.push_back(Dial{address});
  }

  // A random time between a third of the delay and all of it, so that thousands of nodes do not dial at once.
  Duration NextDelay() {
    Duration delay = kFirstDelay * (1 << std::min(s_.attempt, 6));
    ++s_.attempt;
    s_.seed += 0x9e3779b97f4a7c15u;  // splitmix64
    uint64_t mixed = (s_.seed ^ (s_.seed >> 30)) * 0xbf58476d1ce4e5b9u;
    mixed ^= mixed >> 27;
    delay = std::min(delay, kLongestDelay);
    return delay / 3 + Duration(static_cast<int64_t>(mixed % static_cast<uint64_t>((delay - delay / 3).count())));
  }

  void DialLater(const std::string& address) {
    s_.stage = Stage::kDialling;
    s_.linked = false;
    s_.walking.reset();
    s_.target = address;
    s_.dial_until.reset();
    s_.dial_at = now_ + NextDelay();
  }

  void LoseCoordinator(const std::string& detail) {
    s_.alone_since = now_;
    s_.coordinator_heard = s_.last_heard;
    s_.lost_word = s_.last_word;
    s_.attempt = 0;
    s_.walking.reset();
    s_.coordinator_proven_dead = s_.proof = false;
    s_.dead.clear();
    s_.last_failure = detail;
    s_.last_notice.clear();
    out_.reason = fmt::format("the coordinator at {} was lost: {}", Where(s_.target), detail);
    SayOnce(s_.doing == NodeState::kRunning ? out_.reason + "; the workers go on" : out_.reason);
    // A silent coordinator may be back. Only the walk gives it up.
    DialTo(s_.target);
  }

  void DialFailed(Loss loss, const std::string& detail) {
    s_.linked = false;
    s_.stage = Stage::kDialling;
    s_.dial_until.reset();
    s_.dial_at.reset();
    s_.last_failure = detail.empty() ? Where(s_.target) + ": not reachable" : detail;
    if (now_ >= GiveUpAt()) {
      GiveUp();
      return;
    }
    if (loss == Loss::kUnauthenticated && !s_.was_welcomed) {
      Finished(
          {kExitBadConfiguration,
           fmt::format("the coordinator at {} does not accept this node's credentials: {}", Where(s_.target), detail),
           std::nullopt,
           {}});
      return;
    }
    if (s_.walking) {
      if (loss == Loss::kRefused && Fresh()) s_.dead.insert(s_.round->successors[*s_.walking].name);
      Walk(*s_.walking + 1);
      return;
    }
    SayThatItWaits();
    if (s_.round && s_.was_welcomed && !s_.standing_in) {
      if (loss == Loss::kRefused && s_.target == s_.coordinator) {
        s_.coordinator_proven_dead = true;
        s_.proof = Fresh();
      }
      if (s_.coordinator_proven_dead || now_ >= s_.coordinator_heard + Limit()) {
        Walk(0);
        return;
      }
    }
    const bool endpoint_refused = loss == Loss::kRefused && s_.target == s_.endpoint;
    DialLater(Elsewhere());
    if (s_.may_host && !s_.round && endpoint_refused) out_.actions.push_back(HostEndpoint{});
  }

  void SayThatItWaits() {
    const double limit = Whole(s_.options.join_timeout);
    if (s_.was_welcomed) {
      SayOnce(fmt::format("looking for a coordinator: {} (up to {} s)", s_.last_failure, limit));
      return;
    }
    // Indexed nodes meet at node 0.
    SayOnce(fmt::format("waiting for {} at {}: {} (up to {} s)", s_.options.indexed ? "node 0" : "the coordinator",
                        Where(s_.target), NotYet(s_.last_failure, s_.target), limit));
  }

  // The address to dial when no successor is left to try: mostly the endpoint, where a new coordinator appears.
  std::string Elsewhere() const {
    if (s_.standing_in) return s_.target;
    if (s_.was_welcomed && s_.target == s_.coordinator && !s_.coordinator_proven_dead && s_.attempt % 2 == 0) {
      return s_.target;
    }
    if (s_.endpoint.empty() && s_.was_welcomed) return s_.coordinator;
    return s_.endpoint;
  }

  void Walk(size_t index) {
    for (; index < s_.round->successors.size(); ++index) {
      const Successor& successor = s_.round->successors[index];
      if (successor.name == s_.round->coordinator_node) continue;
      if (successor.name == s_.self.name) {
        if (!s_.may_stand_in || s_.outdated) continue;
        StandIn();
        return;
      }
      if (successor.control_address.empty() || s_.dead.contains(successor.name)) continue;
      s_.walking = index;
      DialTo(successor.control_address);
      return;
    }
    DialLater(Elsewhere());
  }

  void StandIn() {
    s_.walking.reset();
    s_.standing_in = true;
    out_.reason = fmt::format("the coordinator is {}: this node stands in for it",
                              s_.coordinator_proven_dead ? "gone" : "silent");
    SayOnce(out_.reason);
    out_.actions.push_back(
        CoordinateHere{*s_.round, s_.proof, std::vector<std::string>(s_.dead.begin(), s_.dead.end()), s_.known_term});
    DialTo("");
    s_.probes = 0;
    if (s_.proof) ProbeMissing("");
  }

  // Probes all successors not known to be gone; if `name` is not empty, only the one with that name.
  void ProbeMissing(const std::string& name) {
    for (const Successor& successor : s_.round->successors) {
      bool known = successor.name == s_.round->coordinator_node || successor.name == s_.self.name ||
                   successor.control_address.empty() || s_.dead.contains(successor.name);
      if (known || (!name.empty() && successor.name != name) || s_.probes >= kMostProbes) continue;
      ++s_.probes;
      out_.actions.push_back(Probe{successor.name, successor.control_address});
    }
  }

  // --- messages of the coordinator ---

  void HearOf(uint64_t term) { s_.known_term = std::max(s_.known_term, term); }

  void Hear(const Welcome& welcome) {
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
    if (s_.may_share && !s_.imports.empty()) Send(Imports{s_.imports});
    if (s_.may_share && s_.wants_imports) Send(Imports{});
    if (s_.round) SayBeat();  // a stand-in counts the nodes from their first message after the Welcome on
  }

  void Hear(const Beat& beat) {
    if (!beat.silent || !s_.silent || !s_.round || beat.round != s_.round->id) return;
    if (s_.doing == NodeState::kRunning) out_.actions.push_back(AllSilent{});
  }

  void Hear(const Notice& notice) {
    if (notice.prepare && s_.doing == NodeState::kRunning) out_.actions.push_back(PrepareNow{});
    if (notice.text == s_.last_notice) return;
    s_.last_notice = notice.text;
    out_.reason = notice.text;
    out_.actions.push_back(Say{notice.text});
  }

  void Hear(const Start& start) {
    if (s_.stage != Stage::kAttending || (s_.round && start.assignment.id <= s_.round->id)) return;
    if (s_.doing != NodeState::kIdle) {
      // The coordinator believes that no worker is left here. A new Hello corrects this.
      Again();
      return;
    }
    s_.round = start.assignment;
    HearOf(start.assignment.id.term);
    s_.outdated = false;
    s_.doing = NodeState::kRunning;
    s_.silent = s_.wants_imports = false;
    s_.report.reset();
    s_.last_notice.clear();
    out_.reason = start.assignment.reason;
    out_.actions.push_back(StartRound{start.assignment});
  }

  void Hear(const Stop& stop) {
    if (!s_.round || stop.round < s_.round->id) return;
    s_.report.reset();
    if (stop.round > s_.round->id) s_.outdated = true;
    if (s_.doing == NodeState::kRunning || s_.doing == NodeState::kSucceeded) {
      s_.doing = NodeState::kStopping;
      out_.reason = stop.reason;
      out_.actions.push_back(StopRound{s_.round->id, stop.reason, stop.cause, stop.keep_evidence});
    } else if (s_.doing == NodeState::kIdle) {
      Send(Ready{s_.round->id, s_.self.store_port});
    }
  }

  void Hear(const rendezvous::Finish& finish) {
    if (s_.round && finish.term < s_.round->id.term) return;
    Finished(finish.verdict);
  }

  void Hear(const Refuse& refuse) {
    if (s_.walking) {  // an agent of another job has that address now
      out_.actions.push_back(HangUp{});
      DialFailed(Loss::kUnreachable, refuse.reason);
      return;
    }
    s_.linked = false;
    out_.actions.push_back(HangUp{});
    Finished({refuse.exit_code, refuse.reason, std::nullopt, {}});
  }

  void Hear(const Redirect& redirect) {
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

  void Hear(const StatusReport&) {}

  void Hear(const Imports& imports) {
    if (!std::exchange(s_.wants_imports, false)) return;
    out_.actions.push_back(GiveImports{imports.names});
  }

  void Again() {
    out_.actions.push_back(HangUp{});
    s_.alone_since = now_;
    s_.coordinator_heard = now_;
    s_.lost_word = s_.last_word;
    DialTo(s_.target);
  }

  State& s_;
  TimePoint now_;
  Effects& out_;
};

}  // namespace

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

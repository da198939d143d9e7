// SPDX-License-Identifier: Apache-2.0
// For attendance.cc and attendance_*.cc only. One Machine lives for one Apply.
#pragma once

#include <algorithm>
#include <string>

#include "rendezvous/attendance.h"

namespace muster::rendezvous::attendance {

class Machine {
 public:
  Machine(State& state, TimePoint now, Effects& effects) : s_(state), now_(now), out_(effects) {}

  void On(const Begin&);
  void On(const Connected&);
  void On(const Disconnected& event);
  void On(const Heard& event);
  void On(const WorkersEnded& event);
  void On(const NoWorkerLeft& event);
  void On(const Silence& event);
  void On(const Prepares& event);
  void On(const Over& event);
  void On(const ShareImports& event);
  void On(const Probed& event);
  void On(const Hosting&);
  void On(const Going& event);
  void On(const Tick&) {}  // CheckDeadlines does the work

  // Called before the event is applied: its message may have waited in the socket while this process did not run.
  void NoticeFreeze();
  void CheckDeadlines();
  void ScheduleLook();

 private:
  Duration Limit() const { return s_.options.heartbeat_timeout; }
  Duration Interval() const { return std::min(s_.beat_interval, Limit() / 3); }
  TimePoint GiveUpAt() const { return s_.alone_since.value_or(now_) + s_.options.join_timeout; }
  bool Frozen() const { return s_.expected && now_ > *s_.expected + Limit() / 3; }
  // True while the lost coordinator cannot have given this node up.
  bool Fresh() const { return now_ < s_.lost_word + Limit(); }
  bool Talking() const { return s_.stage == Stage::kGreeting || s_.stage == Stage::kAttending; }
  void Send(NodeMessage message) { out_.actions.push_back(attendance::Send{std::move(message)}); }
  void SayOnce(const std::string& text);
  static std::string Where(const std::string& address) { return address.empty() ? "this agent" : address; }
  static double Whole(Duration duration);  // seconds

  // attendance.cc: what the agent and the coordinator say
  Hello Greeting() const;
  void BeatWhenDue();
  // Each beat has one answer, in order. The first answer to a beat from after the freeze shows that messages are new.
  void Answered(const Beat& beat);
  void SayBeat();
  void Finished(Verdict verdict);
  void Finish(int code, const std::string& why) { Finished({code, why, std::nullopt, {}}); }
  Duration LeaseTime() const { return Limit() * 4 / 5; }
  bool MayHaveWorkers() const { return s_.doing == NodeState::kRunning || s_.doing == NodeState::kStopping; }
  bool NeedsNoFence() const;
  bool HasNothingToDo() const;
  void FenceWhenDue();
  // The round may go on elsewhere: the workers get a short time to end, once.
  void StopAtOnce(const std::string& reason, RoundCause cause);
  void HearOf(uint64_t term) { s_.known_term = std::max(s_.known_term, term); }
  void Hear(const Welcome& welcome);
  void Hear(const Beat& beat);
  void Hear(const Notice& notice);
  void Hear(const Start& start);
  void Hear(const Stop& stop);
  void Hear(const rendezvous::Finish& finish);
  void Hear(const Refuse& refuse);
  void Hear(const Redirect& redirect);
  void Hear(const StatusReport&) {}
  void Hear(const Imports& imports);
  void Hear(const TelemetryWanted& wanted);
  void Again();  // dials the coordinator once more

  // attendance_search.cc: where to look for a coordinator
  void GiveUp();
  void DialTo(const std::string& address);
  // A random time between a third of the delay and all of it, so that thousands of nodes do not dial at once.
  Duration NextDelay();
  void DialLater(const std::string& address);
  void LoseCoordinator(const std::string& detail);
  void DialFailed(Loss loss, const std::string& detail);
  void SayThatItWaits();
  // The address to dial when no successor is left to try: mostly the endpoint, where a new coordinator appears.
  std::string Elsewhere() const;
  void Walk(size_t index);
  void StandIn();
  // Probes all successors not known to be gone; if `name` is not empty, only the one with that name.
  void ProbeMissing(const std::string& name);

  State& s_;
  TimePoint now_;
  Effects& out_;
};

}  // namespace muster::rendezvous::attendance

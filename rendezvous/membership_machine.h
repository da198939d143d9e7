// SPDX-License-Identifier: Apache-2.0
// For membership.cc and membership_*.cc only. One Machine lives for one Apply.
#pragma once

#include <string>

#include "rendezvous/membership.h"

namespace muster::rendezvous {

inline constexpr int kFewNodes = 64;  // up to this many living nodes get a Notice of every change of the missing nodes

class Machine {
 public:
  Machine(State& state, TimePoint now, Effects& effects) : s_(state), now_(now), out_(effects) {}

  // One for each event.
  void Opened(PeerId peer, const Hello& hello);
  void Said(PeerId peer, const NodeMessage& message);
  void Closed(PeerId peer);
  void Silence();  // Tick: loses the nodes that were silent for too long
  void TakeOver(const StandIn& stand_in);
  void KnowDead(const Gone& gone);
  void NoteRefusal(const std::string& reason);
  void Want(int nodes);
  void Hide(const std::string& why);

  void Settle();        // goes from phase to phase until nothing changes any more
  void ScheduleLook();  // fills look_again

 private:
  // Takes a member out of the counts while it is changed.
  class Change {
   public:
    Change(State& state, Member& member) : state_(state), member_(member) { Count(state_, member_, -1); }
    ~Change() { Count(state_, member_, 1); }
    Change(const Change&) = delete;
    Change& operator=(const Change&) = delete;

   private:
    State& state_;
    Member& member_;
  };
  static void Count(State& state, const Member& member, int sign);

  // membership_greeting.cc: which nodes are admitted
  bool Acceptable(PeerId peer, const Hello& hello);
  bool GivesWay(PeerId peer, const Hello& hello, Member& holder, const std::string& claim);
  bool Early(const Hello& hello) const;
  // This coordinator has begun to coordinate: a node attends or has attended.
  bool Coordinates() const { return s_.phase != Phase::kGathering || s_.round.id.number >= 0 || !s_.members.empty(); }
  void Greet(PeerId peer);
  bool HadSeat(const Hello& hello) const;
  void OutOfDate(const Member& member);
  void Admit(PeerId peer, const Hello& hello);
  void Connect(Member& member, PeerId peer, const Hello& hello, bool fresh, bool came_back);
  void HearNewerRound(const Hello& hello);
  void GivePlace(Member& member, const Hello& hello, bool fresh, bool came_back);
  void AdmitSeated(Member& member, const Hello& hello);
  bool Replaces(const Node& newcomer, const Node& holder) const;
  void RefuseContender(Member& holder);
  void Refuse(PeerId peer, std::string reason);
  void NewcomerReady(Member& member);
  std::string WhyItWaits(const Member& member) const;

  // membership.cc: messages of nodes, loss of nodes
  bool IsOver() const;
  bool AllQuiet() const;
  static bool StillEarly(Hello& hello, const NodeMessage& message);
  void HearReady(Member& member, const Ready& ready);
  void HearLateFailures(const Report& report);
  void Keep(WorkerFailure failure);
  void HearReport(Member& member, const Report& report);
  void HearLeave(Member& member, const Leave& leave);
  void Lose(const std::string& name, const std::string& why, bool silent);
  void NoteLost(State::Lost lost);
  void Forget(const std::string& name);

  // membership_restart.cc: the end of a round
  void BeginStopping(const Why& why, const std::string& except);
  void TellToStop(const Member& member, bool at_once = false);  // as s_.stopping says
  void StopAtOnce();                                            // others may begin a round, by majority
  void Conclude();
  void ConcludeFailure(WorkerFailure cause);
  void RoundSucceeded();
  bool NoProgress();
  void Excuse(const std::string& node, const Why& why);
  int BudgetUsed() const;
  void Restart(const std::string& reason, RoundCause cause);
  void FinishWith(int exit_code, std::string reason, bool with_failures, bool budget_used = false);

  // membership_roster.cc: the start of a round
  int WantedNodes() const;     // max nodes if no number was set (Want)
  bool HasRoom() const;        // the round has fewer nodes than are wanted
  bool GoesOn() const;         // a node of the last round lives and stays
  void TakeIn();               // stops the round for the nodes that came while it runs
  void Hurry(Member& member);  // asks a node of the round to make its standby workers now
  void BeginGathering(const Why& why);
  void Gather();
  bool MayStart();
  // The verdict is that every node was told to leave: it holds for those nodes only. Another one, such as the pod that
  // replaces one of them, is sent away, and goes on without them.
  bool LeftByAll() const { return s_.verdict->exit_code == kExitStopped && s_.verdict->failures.empty(); }
  bool CutOff() const { return s_.silent.AreMajority(s_.round); }
  std::vector<Member*> Choose();
  std::vector<Member*> Place(const std::vector<Member*>& chosen);
  void StartRound(const Why& why);
  void NotifyWaiting(const std::string& text);
  std::string WhoIsMissing() const;
  std::string EndpointHint() const;  // with "; " before it; empty: none

  // membership_reform.cc: a coordinator without memory
  void BeginReforming(const Assignment& newest);
  void Adopt(const Assignment& newest);
  void Collect(Member& member, const Hello& hello);
  void SeatUnstarted(Member& member);
  int Replaced() const;
  void Reform();
  void GoOn(int dead);  // `dead`: nodes of the round known to be gone
  void LoseMissing(int dead);

  void SendTo(PeerId peer, CoordinatorMessage message) { out_.actions.push_back(Send{peer, std::move(message)}); }
  void HangUp(PeerId peer) { out_.actions.push_back(Close{peer}); }
  void Because(const std::string& reason);
  const JobOptions& options() const { return *s_.options; }
  Member* Of(PeerId peer);

  State& s_;
  TimePoint now_;
  Effects& out_;
};

// Texts.
std::string NodeName(const Node& node);  // "node b (host h2)"
std::string Seconds(Duration duration);  // "600 s", "0.5 s"
// The first option in which the two differ: ("nnodes", "1:2", "2:2"); an empty name when they are equal.
struct Difference {
  std::string name;
  std::string ours;
  std::string theirs;
};
Difference FirstDifference(const JobOptions& ours, const JobOptions& theirs);

}  // namespace muster::rendezvous

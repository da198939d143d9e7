// SPDX-License-Identifier: Apache-2.0
// A coordinator without memory: it restarted, or it stands in for a dead one. The nodes tell it which round runs.
#include <algorithm>

#include "base/text.h"
#include "rendezvous/membership_machine.h"

namespace muster::rendezvous {

void Machine::TakeOver(const StandIn& stand_in) {
  if (s_.phase == Phase::kFinished) return;
  for (const auto& [name, member] : s_.members) {
    if (member.peer != 0) HangUp(member.peer);
    if (member.contender) HangUp(member.contender->first);
  }
  State fresh;
  fresh.given = s_.given;
  fresh.arrivals = s_.arrivals;
  auto early = std::move(s_.early);
  s_ = std::move(fresh);
  s_.options = stand_in.options;
  BeginReforming(stand_in.assignment);
  s_.term = std::max(s_.term, stand_in.known_term + 1);
  if (stand_in.proof && !stand_in.assignment.coordinator_node.empty()) {
    s_.reforming.dead.insert(stand_in.assignment.coordinator_node);
  }
  s_.reforming.dead.insert(stand_in.dead.begin(), stand_in.dead.end());
  s_.reforming.stands_in = true;
  s_.reforming.proof = stand_in.proof;
  s_.early = std::move(early);
  for (const auto& [peer, hello] : s_.early) Greet(peer);
}

std::optional<Redirect> AnswerTo(const Supersede& supersede, const std::optional<Redirect>& redirect,
                                 const std::string& self, State& state) {
  // The term of a coordinator that has made no round is only the default.
  const bool empty = state.round.id.number < 0 && state.phase == Phase::kGathering;
  // A coordinator at the endpoint that has begun no round has replaced the one that was lost, so it needs no majority.
  // A stand-in that still waits for one has decided nothing, and yields to it.
  const bool has_begun_none = (state.phase == Phase::kGathering && !state.own_round) ||
                              (state.phase == Phase::kReforming && !state.reforming.stands_in);
  if (supersede.waits && !redirect && has_begun_none) {
    state.term = std::max(state.term, supersede.term + 1);
    return Redirect{state.term, self};
  }
  uint64_t known = redirect ? redirect->term : 0;
  if (!empty && state.phase != Phase::kFinished) known = std::max(known, state.term);
  // With equal terms the stand-in wins: a coordinator that came back without memory can have the same term.
  if (state.phase == Phase::kFinished || supersede.term < known ||
      (redirect && supersede.term == redirect->term && redirect->address != supersede.address)) {
    return redirect && redirect->term >= state.term ? *redirect : Redirect{state.term, self};
  }
  return std::nullopt;
}

void Machine::KnowDead(const Gone& gone) {
  if (s_.phase != Phase::kReforming || !s_.reforming.proof) return;
  auto member = s_.members.find(gone.name);
  if (member == s_.members.end() || member->second.peer == 0) s_.reforming.dead.insert(gone.name);
}

void Machine::BeginReforming(const Assignment& newest) {
  s_.phase = Phase::kReforming;
  s_.waiting = {.since = now_, .notice = ""};
  s_.reforming = {};
  Adopt(newest);
  Because(fmt::format("collecting what the nodes of round {} report", newest.id.number));
}

// Re-forms the round of `newest`. Reports about an older round are void.
void Machine::Adopt(const Assignment& newest) {
  for (auto& [name, member] : s_.members) {
    if (!member.in_round) continue;
    Change change(s_, member);
    member.in_round = false;
    member.rank = -1;
    member.report.reset();
    member.progress.reset();
    if (member.peer != 0) SendTo(member.peer, Stop{newest.id, fmt::format("round {} is newer", newest.id.number)});
  }
  std::vector<std::string> gone;
  for (const auto& [name, member] : s_.members) {
    if (member.peer == 0) gone.push_back(name);
  }
  for (const std::string& name : gone) Forget(name);
  s_.round = Round{};
  s_.own_round = false;
  s_.round.id = newest.id;
  s_.round.restart_count = newest.restart_count;
  s_.round.max_restarts = newest.max_restarts;
  s_.round.world_size = newest.world_size;
  s_.round.coordinator_node = newest.coordinator_node;
  s_.round.reason = newest.reason;
  s_.round.cause = newest.cause;
  s_.round.seats.resize(static_cast<size_t>(std::clamp(newest.node_count, 1, 1 << 20)));
  for (const Successor& successor : newest.successors) {
    if (successor.node_rank < 0 || successor.node_rank >= newest.node_count) continue;
    Node& seated = s_.round.seats[static_cast<size_t>(successor.node_rank)].node;
    seated.name = successor.name;
    seated.control_address = successor.control_address;
    const bool served_here = !s_.given.taken_endpoint.empty() && successor.control_address == s_.given.taken_endpoint;
    if (served_here && successor.name == newest.coordinator_node) s_.reforming.dead.insert(successor.name);
  }
  s_.restarts.count = newest.restart_count;
  s_.term = std::max(s_.term, newest.id.term + 1);  // above a later round that no node here may know of
  s_.trouble = {};
  s_.silent.Clear();
  s_.lost.clear();
  s_.stopping = {};
  s_.reforming.heard = {};
  s_.reforming.heard.until =
      now_ + options().heartbeat_timeout;  // the round's other nodes get the full time to come back
  for (auto& [name, member] : s_.members) SeatUnstarted(member);
}

// A node of the round attends, but has not heard of the round: its Start was lost. It has a seat, and no worker. Its
// process is the one of the seat, since the address is the same.
void Machine::SeatUnstarted(Member& member) {
  if (member.in_round || member.peer == 0 || !member.ready || member.knows.number < 0) return;
  const auto is_its = [&member](const Seat& seat) {
    return seat.node.name == member.node.name && !seat.node.control_address.empty() &&
           seat.node.control_address == member.node.control_address;
  };
  const auto seat = std::find_if(s_.round.seats.begin(), s_.round.seats.end(), is_its);
  if (seat == s_.round.seats.end()) return;
  Change change(s_, member);
  member.in_round = true;
  member.rank = static_cast<int>(seat - s_.round.seats.begin());
  seat->node = member.node;
  s_.reforming.heard.seats.insert(member.rank);
  s_.reforming.dead.erase(member.node.name);
}

void Machine::Collect(Member& member, const Hello& hello) {
  if (!hello.resume) {
    SeatUnstarted(member);
    if (member.ready) NewcomerReady(member);
    return;
  }
  const Assignment& told = *hello.resume;
  if (told.id > s_.round.id) Adopt(told);
  if (told.id < s_.round.id) {
    SeatUnstarted(member);
    OutOfDate(member);
    return;
  }
  int rank = told.node_rank;
  bool fits = told.node_count == static_cast<int>(s_.round.seats.size()) && rank >= 0 && rank < told.node_count &&
              told.world_size == s_.round.world_size && told.restart_count == s_.round.restart_count &&
              told.seat.node.name == hello.node.name && told.seat.node.incarnation == hello.node.incarnation;
  if (fits && s_.reforming.heard.seats.contains(rank)) {
    fits = s_.round.seats[static_cast<size_t>(rank)].node.name == hello.node.name;
  }
  if (!fits) {
    s_.reforming.heard.conflict = true;
    if (!member.ready) SendTo(member.peer, Stop{told.id, "the nodes' reports of this round differ"});
    return;
  }
  s_.round.seats[static_cast<size_t>(rank)] = told.seat;
  s_.reforming.heard.seats.insert(rank);
  if (s_.reforming.stands_in && !s_.reforming.proof) {
    // It may come from a coordinator that has acted until now, and that has given the missing nodes a lease.
    s_.reforming.heard.until = now_ + options().heartbeat_timeout;
  }
  s_.reforming.dead.erase(hello.node.name);
  Change change(s_, member);
  member.in_round = true;
  member.rank = rank;
  member.runs = told.id;
  member.state = hello.state;
  member.ready = hello.state == NodeState::kIdle;
  member.report = hello.report && hello.report->round == told.id ? hello.report : std::nullopt;
  if (member.report && member.report->failures.empty()) member.state = NodeState::kSucceeded;
}

// How many nodes of the round have not come, while other agents with their names have.
int Machine::Replaced() const {
  int replaced = 0;
  for (const Seat& seat : s_.round.seats) {
    const auto member = s_.members.find(seat.node.name);
    if (member == s_.members.end() || member->second.in_round) continue;
    replaced += member->second.peer != 0 && member->second.ready ? 1 : 0;
  }
  return replaced;
}

void Machine::Reform() {
  int seats = static_cast<int>(s_.round.seats.size());
  int dead = 0;
  for (size_t rank = 0; rank < s_.round.seats.size() && !s_.reforming.dead.empty(); ++rank) {
    if (s_.reforming.dead.contains(s_.round.seats[rank].node.name)) ++dead;
    if (rank + 1 == kMaxSuccessors) break;
  }
  int attending = s_.counts.seated_living;
  bool all = attending >= std::max(1, seats - dead);
  // More than half of the nodes not known to be gone: the others may have a stand-in of their own.
  int quorum = s_.reforming.stands_in ? (seats - (s_.reforming.proof ? dead : 0)) / 2 + 1 : 0;
  bool timely = now_ < *s_.reforming.heard.until;
  bool late = now_ >= *s_.waiting.since + options().join_timeout;
  // No majority is needed if the others can do nothing: new agents have their places, and others that may come do so at
  // the job's endpoint, which is here. The old ones are too few for a round, and have stopped their workers by now; or
  // they were pods of an elastic job, in whose place Kubernetes makes no new ones before they have ended.
  const bool others_ended = options().min_nodes == seats || (s_.given.in_pods && options().max_nodes == seats);
  const bool alone = !s_.given.on_call && others_ended && attending + Replaced() >= seats;
  if (!all && (timely || (attending < quorum && !alone))) {
    if (late) {
      FinishWith(kExitCoordinatorLost,
                 fmt::format("the coordinator is lost and only {} of {} reconnected within {}", attending,
                             Counted(s_.round.seats.size(), "node"), Seconds(options().join_timeout)),
                 false);
    } else if (!timely) {
      NotifyWaiting(fmt::format("the coordinator is lost: {} of {} are connected, {} are needed", attending,
                                Counted(s_.round.seats.size(), "node"), quorum));
    }
    return;
  }

  GoOn(dead);
}

// Notes as lost the nodes of the round that have not come.
void Machine::LoseMissing(int dead) {
  int missing = 0;
  std::string first_missing;
  for (size_t rank = 0; rank < s_.round.seats.size(); ++rank) {
    const Node& node = s_.round.seats[rank].node;
    auto member = s_.members.find(node.name);
    if (!node.name.empty() && member != s_.members.end() && member->second.in_round) continue;
    const bool refuses = s_.reforming.dead.contains(node.name);
    // Another agent with its name has come already. That counts as for one that comes later.
    const bool another_came = member != s_.members.end() && member->second.peer != 0;
    if (!refuses && !another_came) s_.silent.Missing(s_.round, rank);
    if (!node.name.empty() && !another_came) NoteLost({node, refuses, now_, *s_.waiting.since});
    if (missing++ == 0) first_missing = node.name.empty() ? fmt::format("node rank {}", rank) : "node " + node.name;
  }
  if (missing == 0) return;
  s_.trouble.loss = {missing == 1 ? fmt::format("{} was lost", first_missing)
                                  : fmt::format("{} and {} more were lost", first_missing, missing - 1)};
  if (dead > 0) s_.trouble.loss.reason += " together with the coordinator";
}

// The living nodes have reported the round. From here on it is like a round that this coordinator made.
void Machine::GoOn(int dead) {
  s_.phase = Phase::kRunning;
  std::vector<std::string> gone;
  const Member* stopped = nullptr;
  const Member* leaving = nullptr;
  const Member* failed = nullptr;
  for (auto& [name, member] : s_.members) {
    member.lost_at.reset();
    if (!member.in_round) continue;
    if (member.peer == 0 && member.state != NodeState::kSucceeded) {
      gone.push_back(name);
      continue;
    }
    bool fails = member.report && !member.report->failures.empty();
    if (fails) {
      s_.trouble.failures.insert(s_.trouble.failures.end(), member.report->failures.begin(),
                                 member.report->failures.end());
      failed = &member;
    } else if (member.state == NodeState::kIdle || member.state == NodeState::kStopping) {
      stopped = &member;
    }
    if (member.leaving && member.state != NodeState::kSucceeded) leaving = &member;
  }
  for (const std::string& name : gone) Forget(name);
  LoseMissing(dead);
  const bool conflict = s_.reforming.heard.conflict;
  s_.reforming = {};
  if (s_.trouble.loss.reason.empty() && leaving != nullptr) {
    s_.trouble.loss.reason = fmt::format("{} is leaving", NodeName(leaving->node));
  }
  if (failed != nullptr) {
    std::string who = failed->node.name;
    BeginStopping({fmt::format("a worker of {} failed", NodeName(failed->node)), RoundCause::kFailure}, who);
  } else if (!s_.trouble.loss.reason.empty()) {
    BeginStopping(s_.trouble.loss, "");
  } else if (conflict) {
    BeginStopping({fmt::format("the nodes' reports of round {} differ", s_.round.id.number)}, "");
  } else if (stopped != nullptr) {
    BeginStopping({fmt::format("{} had no running workers when the coordinator came back", NodeName(stopped->node))},
                  "");
  } else {
    Because(
        fmt::format("round {} goes on: all {} are back", s_.round.id.number, Counted(s_.round.seats.size(), "node")));
    // Nodes that came while the round was re-formed are newcomers like any other.
    for (auto& [name, member] : s_.members) {
      if (s_.phase == Phase::kRunning && !member.in_round && member.ready && !member.leaving) NewcomerReady(member);
    }
  }
}

}  // namespace muster::rendezvous

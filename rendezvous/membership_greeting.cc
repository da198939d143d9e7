// SPDX-License-Identifier: Apache-2.0
// Hellos: which nodes are admitted, with which state. Strangers, duplicates, returning nodes, newcomers.
#include <algorithm>

#include "base/text.h"
#include "base/version.h"
#include "rendezvous/membership_machine.h"

namespace muster::rendezvous {

namespace {

// Advice to the user if two living nodes have one name, or one node rank.
std::string ToTellApart(const Node& holder, const Node& newcomer) {
  if (holder.name != newcomer.name) return "give each node its own";
  const bool one_host_name = holder.host == newcomer.host;
  return fmt::format("give each node its own{}, by --node-name or MUSTER_NODE",
                     one_host_name ? fmt::format(" (both call their host {})", holder.host) : "");
}

}  // namespace

void Machine::NoteRefusal(const std::string& reason) {
  s_.last_refusal = reason;
  out_.refusals.push_back(reason);
}

void Machine::Refuse(PeerId peer, std::string reason) {
  NoteRefusal(reason);
  SendTo(peer, rendezvous::Refuse{kExitBadConfiguration, std::move(reason)});
  HangUp(peer);
}

bool Machine::Acceptable(PeerId peer, const Hello& hello) {
  if (hello.protocol != kRendezvousProtocol) {
    Refuse(peer, fmt::format(
                     "{} speaks rendezvous protocol {} (muster {}), this coordinator protocol {} (muster {}): use the "
                     "same muster on every node",
                     NodeName(hello.node), hello.protocol, hello.version, kRendezvousProtocol, Version()));
    return false;
  }
  const JobOptions& theirs = hello.options;
  if (theirs.min_nodes < 1 || theirs.max_nodes < theirs.min_nodes || theirs.max_restarts < 0) {
    Refuse(peer, fmt::format("nnodes {}:{} with {} restarts is not a possible job", theirs.min_nodes, theirs.max_nodes,
                             theirs.max_restarts));
    return false;
  }
  if (s_.options) {
    // A pod of a Job that was created again has what was left of the budget then. That of the first node holds.
    JobOptions compared = theirs;
    if (s_.given.in_pods) compared.max_restarts = options().max_restarts;
    Difference difference = FirstDifference(options(), compared);
    if (!difference.name.empty()) {
      Refuse(peer, fmt::format("{} has {} {}, the job's first node had {}: give every node the same value",
                               NodeName(hello.node), difference.name, difference.theirs, difference.ours));
      return false;
    }
  }
  if (hello.node.name.empty() || hello.node.slots < 1) {
    Refuse(peer, fmt::format("a node needs a name and at least 1 worker: got '{}' and {}", hello.node.name,
                             hello.node.slots));
    return false;
  }
  if (const auto& told = hello.resume; told && (told->node_count < 1 || told->node_count > theirs.max_nodes ||
                                                told->node_rank < 0 || told->node_rank >= told->node_count)) {
    Refuse(peer,
           fmt::format("{} resumes a round in which it was node rank {} of {}: this job has at most {}",
                       NodeName(hello.node), told->node_rank, told->node_count, Counted(theirs.max_nodes, "node")));
    return false;
  }
  if (theirs.indexed) {
    if (!hello.node.index) {
      Refuse(peer, fmt::format("{} has no node rank: this job's nodes need one from 0 to {}", NodeName(hello.node),
                               theirs.max_nodes - 1));
      return false;
    }
    if (*hello.node.index < 0 || *hello.node.index >= theirs.max_nodes) {
      Refuse(peer, fmt::format("{} has node rank {}: this job's node ranks go from 0 to {}", NodeName(hello.node),
                               *hello.node.index, theirs.max_nodes - 1));
      return false;
    }
  }
  return true;
}

void Machine::Opened(PeerId peer, const Hello& hello) {
  if (s_.phase == Phase::kFinished) {
    if (LeftByAll()) return HangUp(peer);
    SendTo(peer, Finish{s_.term, *s_.verdict});
    return;
  }
  if (Early(hello)) {
    s_.early.emplace_back(peer, hello);
    return;
  }
  if (!Acceptable(peer, hello)) return;
  if (!s_.options) s_.options = hello.options;
  if (!s_.waiting.since) s_.waiting.since = now_;

  if (auto held = s_.members.find(hello.node.name); held != s_.members.end()) {
    if (GivesWay(peer, hello, held->second, fmt::format("the name {}", hello.node.name))) return;
  }
  if (options().indexed) {
    auto place = s_.indexes.find(*hello.node.index);
    if (place != s_.indexes.end() && place->second != hello.node.name) {
      std::string claim = fmt::format("node rank {}", *hello.node.index);
      if (GivesWay(peer, hello, s_.members.at(place->second), claim)) return;
    }
  }
  Admit(peer, hello);
}

// True if the node dials this agent as a stand-in, and this agent does not stand in (yet): it is only on call, or it is
// a successor of the node's last round, which another node coordinated.
bool Machine::Early(const Hello& hello) const {
  if (Coordinates() || s_.given.self_node.empty() || hello.node.name == s_.given.self_node) return false;
  if (s_.given.on_call) return true;
  if (!hello.resume || hello.resume->coordinator_node == s_.given.self_node) return false;
  const auto& successors = hello.resume->successors;
  return std::any_of(successors.begin(), successors.end(), [&](const auto& s) { return s.name == s_.given.self_node; });
}

// True if both are pods of one name: Kubernetes has deleted the holder's, and may not reach it.
bool Machine::Replaces(const Node& newcomer, const Node& holder) const {
  const auto machine = [](const Node& node) { return node.control_address.substr(0, node.control_address.rfind(':')); };
  return s_.given.in_pods && newcomer.host == holder.host && !machine(newcomer).empty() && !machine(holder).empty() &&
         machine(newcomer) != machine(holder);
}

// True if the newcomer must wait, or is refused, because `holder` has the name or index that it claims.
bool Machine::GivesWay(PeerId peer, const Hello& hello, Member& holder, const std::string& claim) {
  bool same = holder.node.name == hello.node.name && holder.node.incarnation == hello.node.incarnation;
  if (same) {
    if (peer < holder.peer) {  // an older connection of this node, whose Hello arrived late
      HangUp(peer);
      return true;
    }
    RefuseContender(holder);
    return false;
  }
  if (holder.peer == 0) {
    if (holder.node.name == hello.node.name) return false;
    // The index is free. The old holder's success in the running round still counts.
    bool counts = s_.phase == Phase::kRunning && holder.in_round && holder.state == NodeState::kSucceeded;
    if (!counts) Forget(holder.node.name);
    return false;
  }
  if (holder.contender && holder.contender->first != peer) {
    const Node& other = holder.contender->second.node;
    if (other.incarnation != hello.node.incarnation && !Replaces(hello.node, other)) {
      Refuse(peer,
             fmt::format("{} is wanted by two other nodes already: {}", claim, ToTellApart(holder.node, hello.node)));
      return true;
    }
    HangUp(holder.contender->first);
    s_.names.erase(holder.contender->first);
  }
  if (hello.resume && hello.resume->id < s_.round.id) {  // it was replaced: it must not stand in by its old roster
    SendTo(peer, Stop{s_.round.id, fmt::format("round {} is over", hello.resume->id.number)});
  }
  holder.contender.emplace(peer, hello);
  holder.told_contender = false;
  s_.names[peer] = holder.node.name;
  SendTo(peer,
         Notice{holder.leaving
                    ? fmt::format("{} is held by {} (pid {}), which is leaving: waiting for its end", claim,
                                  NodeName(holder.node), holder.node.pid)
                    : fmt::format("{} is held by {} (pid {}), last heard of {} ago: waiting for its next sign of life",
                                  claim, NodeName(holder.node), holder.node.pid, Seconds(now_ - holder.last_heard))});
  return true;
}

void Machine::RefuseContender(Member& holder) {
  if (!holder.contender) return;
  if (Replaces(holder.contender->second.node, holder.node)) {
    if (std::exchange(holder.told_contender, true)) return;
    const std::string text = fmt::format("{} (pid {}) is alive, which this pod replaces: waiting for its end",
                                         NodeName(holder.node), holder.node.pid);
    return SendTo(holder.contender->first, Notice{text});
  }
  auto [peer, hello] = std::move(*holder.contender);
  holder.contender.reset();
  s_.names.erase(peer);
  bool name = hello.node.name == holder.node.name;
  Refuse(peer, fmt::format("{} {} is held by {} (pid {}), which is alive: {}", name ? "the name" : "node rank",
                           name ? hello.node.name : fmt::format("{}", hello.node.index.value_or(-1)),
                           NodeName(holder.node), holder.node.pid, ToTellApart(holder.node, hello.node)));
}

void Machine::Admit(PeerId peer, const Hello& hello) {
  const auto [place, fresh] = s_.members.try_emplace(hello.node.name);
  Member& member = place->second;
  const bool came_back = !fresh && member.node.incarnation == hello.node.incarnation;
  Connect(member, peer, hello, fresh, came_back);
  HearNewerRound(hello);
  Greet(peer);
  GivePlace(member, hello, fresh, came_back);
}

// The member is what the Hello says, on the stream `peer`.
void Machine::Connect(Member& member, PeerId peer, const Hello& hello, bool fresh, bool came_back) {
  {
    Change change(s_, member);
    if (fresh) {
      member.arrival = ++s_.arrivals;
    } else {
      if (member.peer != 0) {
        s_.names.erase(member.peer);
        HangUp(member.peer);
      }
      // A new process with the name of one that is gone. It inherits nothing, except the old process's success in the
      // running round.
      if (!came_back && !(s_.phase == Phase::kRunning && member.state == NodeState::kSucceeded)) {
        if (s_.phase == Phase::kReforming && member.in_round) {
          s_.reforming.dead.insert(hello.node.name);
          s_.reforming.heard.seats.erase(member.rank);
        }
        member.in_round = false;
        member.rank = -1;
        member.report.reset();
        member.progress.reset();
      }
      member.lost_at.reset();
    }
    if (member.node.index && member.node.index != hello.node.index) s_.indexes.erase(*member.node.index);
    member.peer = peer;
    member.node = hello.node;
    member.last_heard = now_;
    member.leaving = false;
    member.preparing = hello.preparing;
    if (!member.in_round) {
      member.state = hello.state;
      member.ready = hello.state == NodeState::kIdle;
      member.runs = hello.resume ? hello.resume->id : RoundId{};
    } else if (!came_back) {
      member.ready = hello.state == NodeState::kIdle;
    }
  }
  s_.names[peer] = hello.node.name;
  member.knows = hello.resume ? hello.resume->id : RoundId{};
  s_.silent.Came(hello.node.name, hello.node.incarnation,
                 hello.resume ? std::optional(hello.resume->node_rank) : std::nullopt);
  if (options().indexed) s_.indexes[*hello.node.index] = hello.node.name;
  s_.listen_until.emplace(now_ + options().heartbeat_timeout, peer);
  std::erase_if(s_.lost, [&node = hello.node](const State::Lost& lost) {
    return lost.node.name == node.name || (node.index && lost.node.index == node.index) ||
           (!node.host.empty() && lost.node.host == node.host);
  });
}

// A node knows a newer round, or another coordinator's term.
void Machine::HearNewerRound(const Hello& hello) {
  if (hello.resume && hello.resume->id > s_.round.id && s_.phase != Phase::kReforming) {
    if (s_.own_round && hello.resume->id.term == s_.round.id.term) {
      // This coordinator made the newest round of this term. So the node's round is of an earlier job with this run id,
      // or of this coordinator before it lost its memory. The next round must be newer for that node, too.
      s_.term = std::max(s_.term, hello.resume->id.term + 1);
    } else {
      BeginReforming(*hello.resume);
    }
  }
  // Another coordinator has or had that term.
  if (hello.term > s_.term || (hello.term == s_.term && s_.phase == Phase::kReforming)) s_.term = hello.term + 1;
}

void Machine::GivePlace(Member& member, const Hello& hello, bool fresh, bool came_back) {
  if (s_.phase == Phase::kReforming) {
    Collect(member, hello);
  } else if (member.in_round) {
    if (came_back) AdmitSeated(member, hello);
  } else if ((s_.phase == Phase::kStopping || s_.phase == Phase::kGathering) && HadSeat(hello)) {
    // The node was given up, but it lives: it keeps its seat, and the next round waits until its workers have ended.
    {
      Change change(s_, member);
      member.in_round = true;
      member.rank = hello.resume->node_rank;
    }
    if (hello.report) HearReport(member, *hello.report);
    if (!member.ready) TellToStop(member);
  } else if (!member.ready) {
    OutOfDate(member);
  } else {
    if (hello.resume && hello.resume->id < s_.round.id) OutOfDate(member);
    if (fresh || !came_back) NewcomerReady(member);
  }
}

void Machine::Greet(PeerId peer) {
  SendTo(peer, Welcome{std::max(s_.term, s_.round.id.term), options().heartbeat_timeout / 3, std::string(Version()),
                       true, true, s_.given.self_node});
}

// True if the node had a seat in the current round. In a re-formed round this coordinator may not know the seat's
// incarnation, or its name; then the rest must fit.
bool Machine::HadSeat(const Hello& hello) const {
  if (!hello.resume || hello.resume->id != s_.round.id) return false;
  int rank = hello.resume->node_rank;
  if (rank < 0 || rank >= static_cast<int>(s_.round.seats.size())) return false;
  const Node& seat = s_.round.seats[static_cast<size_t>(rank)].node;
  if (seat.incarnation.empty()) return seat.name.empty() || seat.name == hello.node.name;
  return seat.name == hello.node.name && seat.incarnation == hello.node.incarnation;
}

// Tells the node that its round is over, and that a newer one goes on without it. The Stop has the newest round's id,
// so that the node knows this.
void Machine::OutOfDate(const Member& member) {
  RoundId newest = std::max(s_.round.id, member.runs);
  SendTo(member.peer, Stop{newest, fmt::format("round {} is over", member.runs.number)});
}

// A node of the round is back on a new stream, before this coordinator has noticed the end of the old one.
void Machine::AdmitSeated(Member& member, const Hello& hello) {
  bool of_this_round = hello.resume && hello.resume->id == s_.round.id;
  bool running = s_.phase == Phase::kRunning;
  if (!of_this_round) {
    if (member.ready) return;
    if (running && hello.state == NodeState::kIdle) {
      SendTo(member.peer, Start{AssignmentFor(s_.round, member.rank)});  // the Start was lost with the stream
      return;
    }
    Change change(s_, member);
    member.runs = hello.resume ? hello.resume->id : RoundId{};
    member.ready = hello.state == NodeState::kIdle;
    if (!member.ready) OutOfDate(member);
  } else {
    if (hello.report) HearReport(member, *hello.report);
    if (hello.state == NodeState::kIdle && member.state != NodeState::kSucceeded) {
      HearReady(member, Ready{s_.round.id, hello.node.store_port});
    }
    if (s_.phase == Phase::kStopping && !member.ready && !running) {
      TellToStop(member);
    }
    if (hello.state != NodeState::kStopping) return;
  }
  if (s_.phase == Phase::kRunning) {
    const Why why{fmt::format("{} came back without running workers", NodeName(member.node))};
    if (s_.trouble.loss.reason.empty()) s_.trouble.loss = why;
    BeginStopping(why, of_this_round ? member.node.name : "");
  }
}

void Machine::NewcomerReady(Member& member) {
  if (s_.phase == Phase::kGathering) {
    s_.last_arrival = now_;
    if (s_.counts.living > kFewNodes) {
      SendTo(member.peer,
             Notice{fmt::format("waiting for more nodes: have {} of {}", s_.counts.ready, options().max_nodes)});
    }
    return;
  }
  if (s_.phase == Phase::kStopping) s_.last_arrival = now_;
  if (s_.phase != Phase::kRunning) return;
  s_.last_arrival = now_;
  TakeIn();
  if (s_.phase != Phase::kRunning) return;
  SendTo(member.peer, Notice{WhyItWaits(member)});
}

// For a node that is ready while a round runs without it.
std::string Machine::WhyItWaits(const Member& member) const {
  const std::string number = fmt::format("round {}", s_.round.id.number);
  const std::string why = !HasRoom() ? fmt::format("{} has all its {}", number, Counted(s_.round.seats.size(), "node"))
                          : s_.counts.succeeded != 0            ? fmt::format("{} is about to succeed", number)
                          : options().scale_up != ScaleUp::kNow ? "the job takes new nodes in at its next restart"
                          : member.preparing
                              ? fmt::format("{} takes it in once the standby workers are ready", number)
                              : fmt::format("{} takes new nodes in once all {} are there, or after {}", number,
                                            Counted(WantedNodes(), "node"), Seconds(options().last_call));
  return fmt::format("{}; {} waits as a spare", why, NodeName(member.node));
}

}  // namespace muster::rendezvous

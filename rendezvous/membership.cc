// Messages of the members, and their loss. Hellos are in membership_greeting.cc, the phases in
// membership_{roster,restart,reform}.cc.
#include "rendezvous/membership.h"

#include <algorithm>

#include "base/text.h"
#include "rendezvous/membership_machine.h"

namespace muster::rendezvous {

Effects Apply(State& state, const Event& event, TimePoint now) {
  Effects effects;
  Machine machine(state, now, effects);
  if (state.options && state.expected && now > *state.expected + state.options->heartbeat_timeout / 3) {
    // This process did not run for a while. The nodes' messages of that time still wait in the sockets.
    state.grace_until = now + state.options->heartbeat_timeout / 3;
  }
  if (const auto* opened = std::get_if<PeerOpened>(&event)) {
    machine.Opened(opened->peer, opened->hello);
  } else if (const auto* said = std::get_if<PeerSaid>(&event)) {
    machine.Said(said->peer, said->message);
  } else if (const auto* closed = std::get_if<PeerClosed>(&event)) {
    machine.Closed(closed->peer);
  } else if (const auto* stand_in = std::get_if<StandIn>(&event)) {
    machine.TakeOver(*stand_in);
  } else if (const auto* gone = std::get_if<Gone>(&event)) {
    machine.KnowDead(*gone);
  } else if (const auto* away = std::get_if<TurnedAway>(&event)) {
    machine.NoteRefusal(away->reason);
  } else if (const auto* wanted = std::get_if<Wanted>(&event)) {
    machine.Want(wanted->nodes);
  } else {
    machine.Silence();
  }
  machine.Settle();
  machine.ScheduleLook();
  state.expected = effects.look_again;
  return effects;
}

void Machine::Count(State& state, const Member& member, int sign) {
  State::Counts& counts = state.counts;
  bool living = member.peer != 0;
  if (living) counts.living += sign;
  if (living && member.leaving) counts.leaving += sign;
  if (living && member.ready && !member.leaving) counts.ready += sign;
  if (living && member.in_round) counts.seated_living += sign;
  if (living && member.in_round && member.leaving) counts.seated_leaving += sign;
  if (living && member.in_round && !member.ready && !member.leaving) counts.seated_busy += sign;
  if (member.in_round && member.state == NodeState::kSucceeded) counts.succeeded += sign;
  if (member.in_round && member.state == NodeState::kRunning && member.silent) counts.silent += sign;
}

// True if every node of the round whose workers still run is silent. The silence of a single node may be normal; the
// silence of all is a hang.
bool Machine::AllSilent() const {
  return s_.phase == Phase::kRunning &&
         s_.counts.silent + s_.counts.succeeded == static_cast<int>(s_.round.seats.size());
}

Member* Machine::Of(PeerId peer) {
  auto name = s_.names.find(peer);
  if (name == s_.names.end()) return nullptr;
  auto member = s_.members.find(name->second);
  return member == s_.members.end() || member->second.peer != peer ? nullptr : &member->second;
}

void Machine::Because(const std::string& reason) {
  if (reason == s_.reason) return;
  s_.reason = reason;
  out_.reason = reason;
}

// --- messages of nodes ---

void Machine::Said(PeerId peer, const NodeMessage& message) {
  if (s_.phase == Phase::kFinished) return;
  Member* member = Of(peer);
  if (member == nullptr) {
    auto early = std::find_if(s_.early.begin(), s_.early.end(), [&](const auto& e) { return e.first == peer; });
    if (early != s_.early.end()) {
      bool stays = StillEarly(early->second, message);
      if (stays && !Coordinates()) return;
      Hello hello = std::move(early->second);
      s_.early.erase(early);
      stays ? Opened(peer, hello) : HangUp(peer);
    } else if (s_.names.contains(peer)) {
      if (std::holds_alternative<Beat>(message)) {
        Tell(peer, Beat{});
      } else {
        HangUp(peer);  // the contender's Hello is out of date: it must dial again
      }
    }
    return;
  }
  member->last_heard = now_;
  if (!member->leaving) RefuseContender(*member);  // a leaving member frees its name soon
  if (const auto* beat = std::get_if<Beat>(&message)) {
    member->knows = std::max(member->knows, beat->round);
    bool silent = beat->silent && beat->round == s_.round.id;
    if (silent != member->silent) {
      Change change(s_, *member);
      member->silent = silent;
    }
    Tell(peer, silent && AllSilent() ? Beat{s_.round.id, true} : Beat{});
  } else if (const auto* ready = std::get_if<Ready>(&message)) {
    HearReady(*member, *ready);
  } else if (const auto* report = std::get_if<Report>(&message)) {
    HearReport(*member, *report);
  } else if (const auto* leave = std::get_if<Leave>(&message)) {
    HearLeave(*member, *leave);
  } else if (std::holds_alternative<Doubt>(message)) {
    HangUp(peer);
    Lose(std::string(member->node.name), "it does not hear this coordinator", true);
  }
}

// Updates the Hello of a node that waits for this agent to stand in, by a later message of the node. False: the node
// does not wait any more.
bool Machine::StillEarly(Hello& hello, const NodeMessage& message) {
  if (const auto* ready = std::get_if<Ready>(&message)) {
    hello.state = NodeState::kIdle;
    hello.node.store_port = ready->store_port;
  } else if (const auto* report = std::get_if<Report>(&message)) {
    if (report->late()) return true;
    hello.report = *report;
    hello.state = report->failures.empty() ? NodeState::kSucceeded : NodeState::kStopping;
  } else {
    return std::holds_alternative<Beat>(message);
  }
  return true;
}

void Machine::HearReady(Member& member, const Ready& ready) {
  if (ready.round != member.runs) return;
  member.knows = ready.round;
  member.node.store_port = ready.store_port;
  if (member.ready) return;
  if (ready.round == s_.round.id) member.progress = ready.progress;
  {
    Change change(s_, member);
    member.ready = true;
    if (member.state != NodeState::kSucceeded) member.state = NodeState::kIdle;
  }
  if (!member.in_round) {
    if (!member.leaving) NewcomerReady(member);
  } else if (s_.phase == Phase::kRunning && member.state != NodeState::kSucceeded) {
    const Why why{fmt::format("{} has no worker left and told no reason", NodeName(member.node))};
    if (s_.loss.reason.empty()) s_.loss = why;
    BeginStopping(why, member.node.name);
  }
}

void Machine::HearLeave(Member& member, const Leave& leave) {
  if (member.leaving) return;
  s_.abandoned = true;
  {
    Change change(s_, member);
    member.leaving = true;
  }
  const Why why{
      fmt::format("{} is leaving ({})", NodeName(member.node), leave.reason.empty() ? "asked to stop" : leave.reason),
      leave.cause == LeaveCause::kPreempted ? RoundCause::kPreemption : RoundCause::kMembership};
  if (member.in_round && member.state != NodeState::kSucceeded && s_.loss.reason.empty()) s_.loss = why;
  if (s_.phase == Phase::kRunning && member.in_round && member.state != NodeState::kSucceeded) {
    BeginStopping(why, member.node.name);
  } else if (s_.phase == Phase::kStopping && leave.cause == LeaveCause::kUnhealthy) {
    Excuse(member.node.name, why);
  } else if (s_.phase == Phase::kGathering) {
    Because(why.reason);
  }
}

// --- loss of nodes ---

void Machine::Closed(PeerId peer) {
  std::erase_if(s_.early, [&](const auto& early) { return early.first == peer; });
  auto name = s_.names.find(peer);
  if (name == s_.names.end()) return;
  auto member = s_.members.find(name->second);
  if (member == s_.members.end() || member->second.peer != peer) {
    if (member != s_.members.end() && member->second.contender && member->second.contender->first == peer) {
      member->second.contender.reset();
    }
    s_.names.erase(name);
    return;
  }
  // After a freeze of this process the node may live: it may have left because it took this coordinator for dead.
  bool doubtful = s_.grace_until && now_ < *s_.grace_until;
  std::string held = name->second;
  Lose(held, "its connection closed", doubtful);
}

void Machine::Silence() {
  if (!s_.options || s_.phase == Phase::kFinished) return;
  Duration limit = options().heartbeat_timeout;
  while (!s_.silence.empty() && s_.silence.begin()->first <= now_) {
    PeerId peer = s_.silence.begin()->second;
    s_.silence.erase(s_.silence.begin());
    Member* member = Of(peer);
    if (member == nullptr) continue;
    TimePoint due = member->last_heard + limit;
    if (s_.grace_until) due = std::max(due, *s_.grace_until);
    if (due > now_) {
      s_.silence.emplace(due, peer);
      continue;
    }
    HangUp(peer);
    std::string name = member->node.name;
    Lose(name, fmt::format("it was silent for {}", Seconds(now_ - member->last_heard)), true);
    if (s_.phase == Phase::kFinished) return;
  }
  if (s_.grace_until && *s_.grace_until <= now_) s_.grace_until.reset();
}

void Machine::Lose(const std::string& name, const std::string& why, bool silent) {
  Member& member = s_.members.at(name);
  auto contender = std::move(member.contender);
  member.contender.reset();
  s_.names.erase(member.peer);
  if (contender) s_.names.erase(contender->first);
  std::string sentence = member.leaving ? fmt::format("{} has left", NodeName(member.node))
                                        : fmt::format("{} was lost: {}", NodeName(member.node), why);
  bool succeeded = member.state == NodeState::kSucceeded;
  if (silent && member.in_round) {
    s_.silent[name] = {member.knows, member.runs, member.node.incarnation, contender.has_value()};
    s_.cut_off.reset();
  }
  if (!member.in_round) {
    Forget(name);
  } else if (s_.phase == Phase::kReforming || (s_.phase == Phase::kRunning && succeeded)) {
    Change change(s_, member);
    member.peer = 0;
    member.lost_at = now_;
  } else {
    if (s_.loss.reason.empty()) s_.loss = {sentence};
    Forget(name);
    if (s_.phase == Phase::kRunning) BeginStopping({sentence}, "");
  }
  if (contender) Opened(contender->first, contender->second);
}

void Machine::Forget(const std::string& name) {
  auto place = s_.members.find(name);
  Count(s_, place->second, -1);
  if (place->second.node.index) {
    auto index = s_.indexes.find(*place->second.node.index);
    if (index != s_.indexes.end() && index->second == name) s_.indexes.erase(index);
  }
  s_.members.erase(place);
}

}  // namespace muster::rendezvous

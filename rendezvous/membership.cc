// SPDX-License-Identifier: Apache-2.0
// The loop over the phases, messages of the members, and their loss. Hellos are in membership_greeting.cc, the phases
// in membership_{roster,restart,reform}.cc.
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
  } else if (const auto* hidden = std::get_if<Hidden>(&event)) {
    machine.Hide(hidden->why);
  } else {
    machine.Silence();
  }
  machine.Settle();
  machine.ScheduleLook();
  state.expected = effects.look_again;
  return effects;
}

// No node is wanted, and none here works: the others have ended.
bool Machine::IsOver() const {
  if (s_.given.wanted_nodes != 0 || (s_.phase != Phase::kGathering && s_.phase != Phase::kReforming)) return false;
  return std::none_of(s_.members.begin(), s_.members.end(), [](const auto& entry) {
    const Member& member = entry.second;
    return member.peer != 0 && !member.ready && member.state != NodeState::kSucceeded;
  });
}

void Machine::Settle() {
  if (!s_.options) return;
  for (;;) {
    Phase phase = s_.phase;
    if ((phase == Phase::kGathering || (phase == Phase::kStopping && !UsesBudget(s_.stopping.why.cause))) &&
        s_.abandoned && s_.counts.living == s_.counts.leaving) {
      FinishWith(kExitStopped, "every node was asked to stop", false);
      return;
    }
    if (IsOver()) return FinishWith(0, kRunIsOver, false);
    switch (phase) {
      case Phase::kGathering:
        Gather();
        break;
      case Phase::kReforming:
        Reform();
        break;
      case Phase::kRunning:
        TakeIn();
        if (s_.counts.succeeded == static_cast<int>(s_.round.seats.size())) RoundSucceeded();
        // Also nodes that have succeeded: the others may begin the round again, by majority.
        if (s_.phase == Phase::kRunning && CutOff()) BeginStopping({"most nodes fell silent"}, "");
        break;
      case Phase::kStopping:
        if (CutOff()) StopAtOnce();
        if (s_.counts.seated_busy == 0) {
          Conclude();
        } else if (now_ >= *s_.stopping.since + options().join_timeout) {
          std::string why =
              fmt::format("{} did not stop their workers within {}: {}", Counted(s_.counts.seated_busy, "node"),
                          Seconds(options().join_timeout), s_.stopping.why.reason);
          auto cause = UsesBudget(s_.stopping.why.cause) ? RootCause(s_.trouble.failures) : std::nullopt;
          FinishWith(cause && cause->exit_code != 0 ? cause->exit_code : kExitRendezvousTimeout, why, true);
        }
        break;
      case Phase::kFinished:
        return;
    }
    if (s_.phase == phase) return;
  }
}

void Machine::ScheduleLook() {
  if (!s_.options || s_.phase == Phase::kFinished) return;
  std::optional<TimePoint> look;
  if (!s_.listen_until.empty()) look = s_.listen_until.begin()->first;
  if (s_.grace_until) look = Earlier(look, s_.grace_until);
  if (s_.phase == Phase::kGathering) {
    const State::Counts& counts = s_.counts;
    bool enough = counts.ready >= options().min_nodes && counts.seated_busy == 0 && !CutOff() && !s_.grace_until;
    if (enough && s_.last_arrival && now_ < *s_.last_arrival + options().last_call) {
      look = Earlier(look, *s_.last_arrival + options().last_call);
    } else {
      look = Earlier(look, *s_.waiting.since + options().join_timeout);
    }
  } else if (s_.phase == Phase::kRunning) {
    // Newcomers wait for the wanted number of nodes.
    const bool waits = s_.given.wanted_nodes && s_.counts.ready > 0 && s_.last_arrival;
    if (waits && now_ < *s_.last_arrival + options().last_call)
      look = Earlier(look, *s_.last_arrival + options().last_call);
    if (s_.take_in_by) look = Earlier(look, *s_.take_in_by);
  } else if (s_.phase == Phase::kReforming) {
    TimePoint until = *s_.waiting.since + options().join_timeout;
    look = Earlier(look, s_.reforming.heard.until && *s_.reforming.heard.until > now_
                             ? std::min(*s_.reforming.heard.until, until)
                             : until);
  } else if (s_.phase == Phase::kStopping) {
    look = Earlier(look, *s_.stopping.since + options().join_timeout);
  }
  // Everything that is due was handled by this Apply. A time in the past would make the driver spin.
  if (look) look = std::max(*look, now_ + std::chrono::milliseconds(1));
  out_.look_again = look;
}

void Machine::Count(State& state, const Member& member, int sign) {
  State::Counts& counts = state.counts;
  bool living = member.peer != 0;
  if (living) counts.living += sign;
  if (living && member.leaving) counts.leaving += sign;
  if (living && member.ready && !member.leaving) counts.ready += sign;
  if (living && member.ready && !member.leaving && member.preparing) counts.preparing += sign;
  const bool running = member.in_round && member.state == NodeState::kRunning;
  if (living && running && !member.leaving && member.preparing) counts.seated_preparing += sign;
  if (living && member.in_round) counts.seated_living += sign;
  if (living && member.in_round && member.leaving) counts.seated_leaving += sign;
  if (living && member.in_round && !member.ready && !member.leaving) counts.seated_busy += sign;
  if (member.in_round && member.state == NodeState::kSucceeded) counts.succeeded += sign;
  if (running && member.quiet) counts.quiet += sign;
}

// True if the workers of every node that still runs some write nothing. For a single node that may be normal; if all
// are quiet, it is a hang.
bool Machine::AllQuiet() const {
  return s_.phase == Phase::kRunning &&
         s_.counts.quiet + s_.counts.succeeded == static_cast<int>(s_.round.seats.size());
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
        SendTo(peer, Beat{});
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
    bool quiet = beat->silent && beat->round == s_.round.id;
    if (quiet != member->quiet || beat->preparing != member->preparing) {
      Change change(s_, *member);
      member->quiet = quiet;
      member->preparing = beat->preparing;
    }
    if (s_.hurries && s_.phase == Phase::kRunning) Hurry(*member);
    Beat answer{.stamp = beat->stamp, .lease = s_.phase != Phase::kReforming};
    if (quiet && AllQuiet()) answer.round = s_.round.id, answer.silent = true;
    SendTo(peer, answer);
  } else if (const auto* ready = std::get_if<Ready>(&message)) {
    HearReady(*member, *ready);
  } else if (const auto* report = std::get_if<Report>(&message)) {
    HearReport(*member, *report);
  } else if (const auto* leave = std::get_if<Leave>(&message)) {
    HearLeave(*member, *leave);
  } else if (std::holds_alternative<Doubt>(message)) {
    HangUp(peer);
    Lose(std::string(member->node.name), "it receives no messages from this coordinator", true);
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
  } else if (const auto* beat = std::get_if<Beat>(&message)) {
    hello.preparing = beat->preparing;
  } else {
    return false;
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
  if (s_.phase == Phase::kReforming) SeatUnstarted(member);
  const bool cut_off = ready.cut_off && ready.round == s_.round.id && member.in_round;
  if (cut_off && s_.trouble.loss.reason.empty()) {
    s_.trouble.loss = {fmt::format("{} was cut off, and stopped its workers", NodeName(member.node))};
  }
  if (!member.in_round) {
    if (!member.leaving) NewcomerReady(member);
  } else if (s_.phase == Phase::kRunning && member.state != NodeState::kSucceeded) {
    const Why silent{fmt::format("{} has no worker left and gave no reason", NodeName(member.node))};
    if (s_.trouble.loss.reason.empty()) s_.trouble.loss = silent;
    BeginStopping(cut_off ? s_.trouble.loss : silent, member.node.name);
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
  if (member.in_round && member.state != NodeState::kSucceeded && s_.trouble.loss.reason.empty()) s_.trouble.loss = why;
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
  while (!s_.listen_until.empty() && s_.listen_until.begin()->first <= now_) {
    PeerId peer = s_.listen_until.begin()->second;
    s_.listen_until.erase(s_.listen_until.begin());
    Member* member = Of(peer);
    if (member == nullptr) continue;
    TimePoint due = member->last_heard + limit;
    if (s_.grace_until) due = std::max(due, *s_.grace_until);
    if (due > now_) {
      s_.listen_until.emplace(due, peer);
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
  if (!member.leaving && !succeeded) NoteLost({member.node, !silent, now_, member.last_heard});
  if (silent && member.in_round) {
    s_.silent.Lost(name, {member.knows, member.runs, member.node.incarnation, contender.has_value()});
  }
  if (!member.in_round) {
    Forget(name);
  } else if (s_.phase == Phase::kReforming || (s_.phase == Phase::kRunning && succeeded)) {
    Change change(s_, member);
    member.peer = 0;
    member.lost_at = now_;
  } else {
    if (s_.trouble.loss.reason.empty()) s_.trouble.loss = {sentence};
    Forget(name);
    if (s_.phase == Phase::kRunning) BeginStopping({sentence}, "");
  }
  if (contender) Opened(contender->first, contender->second);
}

void Machine::NoteLost(State::Lost lost) {
  const auto is_known = [&lost](const State::Lost& known) { return known.node.name == lost.node.name; };
  if (s_.phase == Phase::kFinished || std::any_of(s_.lost.begin(), s_.lost.end(), is_known)) return;
  if (s_.lost.size() >= kMostLost) s_.lost.erase(s_.lost.begin());
  s_.lost.push_back(std::move(lost));
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

// SPDX-License-Identifier: Apache-2.0
// How a round begins: when, with which nodes, with which ranks. Also the notices to waiting nodes.
#include <algorithm>
#include <iterator>
#include <limits>
#include <tuple>
#include <utility>

#include "base/text.h"
#include "rendezvous/membership_machine.h"
#include "rendezvous/outliers.h"

namespace muster::rendezvous {
namespace {

constexpr size_t kNamesShown = 16;  // of nodes, in a sentence
// How long newcomers wait for nodes that are preparing: about as long as imports may take from a network file system.
constexpr Duration kPreparingLimit = std::chrono::seconds(60);

// Nodes without an index come after those with one.
int IndexOf(const Member& member) { return member.node.index.value_or(std::numeric_limits<int>::max()); }

// "a, b and 7 more": at most kNamesShown of `names`, where `count` is the number of all.
std::string List(std::vector<std::string> names, size_t count) {
  names.resize(std::min(names.size(), kNamesShown));
  const size_t more = count - names.size();
  return more == 0 ? Join(names, ", ") : fmt::format("{} and {} more", Join(names, ", "), more);
}

}  // namespace

int Machine::WantedNodes() const {
  return std::clamp(s_.given.wanted_nodes.value_or(options().max_nodes), options().min_nodes, options().max_nodes);
}

void Machine::Want(int nodes) {
  s_.given.wanted_nodes = nodes;
  if (s_.options) Because(fmt::format("{} are wanted now", Counted(nodes, "node")));
}

void Machine::Hide(const std::string& why) {
  const bool was = !std::exchange(s_.given.hidden, why).empty();
  if (was && why.empty() && s_.last_arrival) s_.last_arrival = now_;
}

bool Machine::HasRoom() const { return static_cast<int>(s_.round.seats.size()) < WantedNodes() && !options().indexed; }

bool Machine::GoesOn() const { return s_.round.id.number >= 0 && s_.counts.seated_living > s_.counts.seated_leaving; }

// Stops the round if nodes wait and there is room; the next round takes all of them. If the wanted number is known, it
// waits until that many are there, or last_call has passed: else each newcomer would interrupt the others. It also
// waits up to a limit for standby workers that are not ready yet, of newcomers and of its own nodes: the job goes on
// meanwhile, and stops for a short time only.
void Machine::TakeIn() {
  const State::Counts& counts = s_.counts;
  const auto take_in_by = std::exchange(s_.take_in_by, std::nullopt);
  if (s_.phase != Phase::kRunning || counts.ready == 0 || counts.succeeded != 0 || !HasRoom()) return;
  if (options().scale_up != ScaleUp::kNow) return;
  if (!std::exchange(s_.hurries, true)) {
    for (auto& [name, member] : s_.members) Hurry(member);
  }
  const int prepared = counts.ready - counts.preparing;
  if (prepared == 0) return;
  const int there = counts.ready + counts.seated_busy;
  const bool in_time = s_.last_arrival && now_ < *s_.last_arrival + options().last_call;
  if (s_.given.wanted_nodes && there < WantedNodes() && in_time) return;
  if (counts.preparing + counts.seated_preparing > 0) {
    const TimePoint limit = take_in_by.value_or(now_ + kPreparingLimit);
    if (now_ < limit) return void(s_.take_in_by = limit);
  }
  std::string who = Counted(prepared, "node");
  for (const auto& [name, member] : s_.members) {
    const bool joins = member.peer != 0 && member.ready && !member.leaving && !member.preparing;
    if (prepared == 1 && joins) who = NodeName(member.node);
  }
  BeginStopping({fmt::format("scaling up: {} joined", who)}, "");
}

void Machine::Hurry(Member& member) {
  if (member.peer == 0 || !member.in_round || !member.preparing || std::exchange(member.hurried, true)) return;
  SendTo(
      member.peer,
      Notice{fmt::format("round {} stops for new nodes once the standby workers are ready", s_.round.id.number), true});
}

void Machine::BeginGathering(const Why& why) {
  s_.phase = Phase::kGathering;
  s_.waiting = {.since = now_, .notice = ""};
  s_.stopping.why = why;
  Because(why.reason);
}

bool Machine::MayStart() {
  const State::Counts& counts = s_.counts;
  if (counts.seated_busy > 0 || CutOff()) return false;
  // After a freeze of this process another node may coordinate, and its message may not have been read yet.
  if (s_.grace_until && now_ < *s_.grace_until) return false;
  if (counts.ready < options().min_nodes) return false;
  bool full = counts.ready >= WantedNodes();
  if (!full && !GoesOn()) {
    if (s_.last_arrival && now_ < *s_.last_arrival + options().last_call) return false;
    if (!s_.given.hidden.empty() && now_ < *s_.waiting.since + options().join_timeout) return false;
  }
  // A round does not start with a node that has missed two beats: it must be heard or lost first.
  TimePoint heard = now_ - options().heartbeat_timeout * 2 / 3;
  return std::none_of(s_.members.begin(), s_.members.end(), [&](const auto& entry) {
    const Member& member = entry.second;
    return member.peer != 0 && member.ready && !member.leaving && member.last_heard < heard;
  });
}

void Machine::Gather() {
  const State::Counts& counts = s_.counts;
  if (MayStart()) {
    bool first = s_.round.id.number < 0;
    Why why = s_.stopping.why;
    if (first || why.reason.empty()) {
      why.reason = counts.ready >= WantedNodes()
                       ? (counts.ready == 1 ? std::string("the node is ready")
                                            : fmt::format("all {} are ready", Counted(WantedNodes(), "node")))
                       : fmt::format("{} of {} are ready and the last call is over", counts.ready,
                                     Counted(WantedNodes(), "node"));
    }
    StartRound(why);
    return;
  }
  bool too_few = counts.ready < options().min_nodes;
  bool stuck = too_few || counts.seated_busy > 0 || CutOff();
  if (stuck && now_ >= *s_.waiting.since + options().join_timeout) {
    std::string limit = Seconds(options().join_timeout);
    std::string why =
        too_few ? WhoIsMissing()
        : CutOff()
            ? fmt::format("{} fell silent and did not come back within {}", Counted(s_.silent.size(), "node"), limit)
            : fmt::format("{} did not stop their workers within {}", Counted(counts.seated_busy, "node"), limit);
    FinishWith(kExitRendezvousTimeout,
               s_.round.id.number < 0 ? why : fmt::format("{} ({})", why, s_.stopping.why.reason), false);
    return;
  }
  if (counts.living == 0) return;
  if (CutOff()) {
    NotifyWaiting(fmt::format("{} fell silent at the same time: the fault may be this side's network; waiting for them",
                              Counted(s_.silent.size(), "node")));
  } else if (counts.seated_busy > 0) {
    NotifyWaiting("waiting for the last round's workers to end");
  } else if (too_few) {
    int missing = options().min_nodes - counts.ready;
    NotifyWaiting(fmt::format("waiting for {} more {}: have {} of {} (up to {})", missing,
                              missing == 1 ? "node" : "nodes", counts.ready, options().min_nodes,
                              Seconds(options().join_timeout)) +
                  (counts.living == 1 && s_.round.id.number < 0 ? EndpointHint() : ""));
  } else if (!s_.given.hidden.empty()) {
    NotifyWaiting(fmt::format("have {} of {}, and no other one can come yet: {} (up to {})", counts.ready,
                              Counted(WantedNodes(), "node"), s_.given.hidden, Seconds(options().join_timeout)));
  } else {
    NotifyWaiting(fmt::format("have {} of {}, {} at least: waiting {} for more", counts.ready,
                              Counted(WantedNodes(), "node"), options().min_nodes, Seconds(options().last_call)));
  }
}

void Machine::NotifyWaiting(const std::string& text) {
  if (text == s_.waiting.notice) return;
  s_.waiting.notice = text;
  Because(text);
  if (s_.counts.living > kFewNodes) return;  // newcomers are told when they come
  for (auto& [name, member] : s_.members) {
    if (member.peer != 0 && member.ready && !member.leaving) SendTo(member.peer, Notice{text});
  }
}

std::string Machine::EndpointHint() const {
  return s_.given.endpoint_hint.empty() ? "" : "; " + s_.given.endpoint_hint;
}

std::string Machine::WhoIsMissing() const {
  std::string limit = Seconds(options().join_timeout);
  // A refused node has reached this coordinator, so its endpoint is right and no hint is needed.
  std::string refused = s_.last_refusal.empty() ? EndpointHint() : "; the last one refused: " + s_.last_refusal;
  std::vector<std::string> names;
  std::set<int> indexes;
  for (const auto& [name, member] : s_.members) {
    if (member.peer == 0 || !member.ready || member.leaving) continue;
    names.push_back(name);
    if (member.node.index) indexes.insert(*member.node.index);
  }
  std::sort(names.begin(), names.end());
  if (options().indexed) {
    std::vector<std::string> missing;
    for (int index = 0; index < options().max_nodes && missing.size() < kNamesShown; ++index) {
      if (!indexes.contains(index)) missing.push_back(fmt::format("{}", index));
    }
    const size_t count = static_cast<size_t>(options().max_nodes) - indexes.size();
    return fmt::format("{} of {} came within {}, node {} missing: {}{}", names.size(),
                       Counted(options().max_nodes, "node"), limit, count == 1 ? "rank is" : "ranks are",
                       List(std::move(missing), count), refused);
  }
  return fmt::format("{} of {} came within {}{}{}", names.size(), Counted(options().min_nodes, "node"), limit,
                     names.empty() ? std::string() : ": " + List(names, names.size()), refused);
}

// The nodes that take part: the last round's nodes before others, then those that are preparing last, then by index,
// then by arrival. A job that goes on, and has enough nodes, does not wait for the imports of a newcomer that it can
// take in later.
std::vector<Member*> Machine::Choose() {
  std::vector<Member*> ready;
  ready.reserve(static_cast<size_t>(s_.counts.ready));
  for (auto& [name, member] : s_.members) {
    if (member.peer != 0 && member.ready && !member.leaving) ready.push_back(&member);
  }
  size_t max = static_cast<size_t>(options().max_nodes);
  std::sort(ready.begin(), ready.end(), [](const Member* a, const Member* b) {
    if (a->in_round != b->in_round) return a->in_round;
    return std::tuple(a->preparing, IndexOf(*a), a->arrival) < std::tuple(b->preparing, IndexOf(*b), b->arrival);
  });
  if (ready.size() > max) ready.resize(max);
  const auto min = static_cast<size_t>(options().min_nodes);
  const bool later = GoesOn() && options().scale_up == ScaleUp::kNow;
  while (later && ready.size() > min && ready.back()->preparing && !ready.back()->in_round) ready.pop_back();
  return ready;
}

// The nodes in the order of their ranks. Survivors keep their place. A newcomer gets the vacant place of its own name;
// the others fill the rest, and are then appended, in torchrun's order. Last, nodes with an index are moved to the
// front, by index. So the same nodes have the same ranks after every restart, whichever comes back first.
std::vector<Member*> Machine::Place(const std::vector<Member*>& chosen) {
  std::vector<Member*> places(s_.round.seats.size(), nullptr);
  std::vector<Member*> newcomers;
  for (Member* member : chosen) {
    if (member->in_round && member->rank >= 0) {
      places[static_cast<size_t>(member->rank)] = member;
    } else {
      newcomers.push_back(member);
    }
  }
  std::map<std::string, size_t> vacant;
  if (!newcomers.empty()) {
    for (size_t rank = 0; rank < places.size(); ++rank) {
      if (places[rank] == nullptr) vacant.emplace(s_.round.seats[rank].node.name, rank);
    }
  }
  std::vector<Member*> others;
  for (Member* member : newcomers) {
    auto own = vacant.find(member->node.name);
    if (own == vacant.end()) {
      others.push_back(member);
    } else {
      places[own->second] = member;
      vacant.erase(own);
    }
  }
  std::sort(others.begin(), others.end(),
            [](const Member* a, const Member* b) { return InTorchrunsOrder(a->node, b->node); });
  size_t rank = 0;
  for (Member* member : others) {
    while (rank < places.size() && places[rank] != nullptr) ++rank;
    if (rank < places.size()) {
      places[rank] = member;
    } else {
      places.push_back(member);
    }
  }
  std::erase(places, nullptr);
  std::stable_sort(places.begin(), places.end(),
                   [](const Member* a, const Member* b) { return IndexOf(*a) < IndexOf(*b); });
  return places;
}

void Machine::StartRound(const Why& why) {
  std::vector<Member*> places = Place(Choose());
  std::vector<const Node*> nodes;
  nodes.reserve(places.size());
  for (const Member* member : places) nodes.push_back(&member->node);
  s_.slow = FindOutliers(nodes);
  Round round;
  round.id = {std::max(s_.term, s_.round.id.term), s_.round.id.number + 1};
  round.restart_count = s_.restarts.count;
  round.max_restarts = options().max_restarts;
  round.coordinator_node = s_.given.self_node;
  round.reason = s_.slow.empty() ? why.reason : fmt::format("{}; {}", why.reason, DescribeOutliers(s_.slow));
  round.cause = why.cause;
  round.seats.reserve(places.size());
  std::map<std::string, int> roles;
  for (const Member* member : places) {
    Seat seat{member->node, round.world_size, roles[member->node.role], 0};
    round.world_size += member->node.slots;
    roles[member->node.role] += member->node.slots;
    round.seats.push_back(std::move(seat));
  }
  for (Seat& seat : round.seats) seat.role_world_size = roles[seat.node.role];

  // Every node that is still here has said Ready for the round that ends now, or is leaving and cannot stand in. So
  // nodes that know only the round before cannot have a majority any more.
  s_.silent.RoundBegins(s_.round);
  s_.term = round.id.term;
  s_.round = std::move(round);
  s_.own_round = true;
  s_.phase = Phase::kRunning;
  s_.trouble = {};
  s_.stopping = {};
  s_.waiting = {};
  s_.hurries = false;
  s_.last_refusal.clear();
  for (auto& [name, member] : s_.members) {
    Change change(s_, member);
    member.in_round = false;
    member.rank = -1;
    member.report.reset();
    member.progress.reset();
    member.quiet = false;
    if (member.ready) member.state = NodeState::kIdle;
  }
  for (size_t rank = 0; rank < places.size(); ++rank) {
    Member& member = *places[rank];
    {
      Change change(s_, member);
      member.in_round = true;
      member.ready = member.hurried = false;
      member.state = NodeState::kRunning;
      member.rank = static_cast<int>(rank);
      member.runs = s_.round.id;
    }
    SendTo(member.peer, Start{AssignmentFor(s_.round, member.rank)});
  }
  for (auto& [name, member] : s_.members) {
    if (member.in_round || member.peer == 0 || !member.ready || member.leaving) continue;
    SendTo(member.peer, Notice{WhyItWaits(member)});
  }
  Because(s_.round.reason);
}

}  // namespace muster::rendezvous

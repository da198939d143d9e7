// SPDX-License-Identifier: Apache-2.0
// The search for a coordinator: which address to dial next, when to stand in, when to give up.
#include <algorithm>

#include "base/host_names.h"
#include "base/not_yet.h"
#include "base/text.h"
#include "rendezvous/attendance_machine.h"

namespace muster::rendezvous::attendance {
namespace {

constexpr Duration kFirstDelay = std::chrono::milliseconds(20);
constexpr Duration kLongestDelay = std::chrono::seconds(1);
// For so long an address may be that of another job's pod, which has another token: Kubernetes gives addresses again,
// and an answer of the DNS may be old.
constexpr Duration kForOldAddress = std::chrono::seconds(120);
constexpr int kMostProbes = 8 * static_cast<int>(kMaxSuccessors);

}  // namespace

void Machine::GiveUp() {
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

void Machine::DialTo(const std::string& address) {
  s_.stage = Stage::kDialling;
  s_.linked = false;
  s_.target = address;
  s_.dial_at.reset();
  s_.dial_until = now_ + (s_.walking ? Limit() / 3 : Limit());
  out_.actions.push_back(Dial{address});
}

Duration Machine::NextDelay() {
  Duration delay = kFirstDelay * (1 << std::min(s_.attempt, 6));
  ++s_.attempt;
  s_.seed += 0x9e3779b97f4a7c15u;  // splitmix64
  uint64_t mixed = (s_.seed ^ (s_.seed >> 30)) * 0xbf58476d1ce4e5b9u;
  mixed ^= mixed >> 27;
  delay = std::min(delay, kLongestDelay);
  return delay / 3 + Duration(static_cast<int64_t>(mixed % static_cast<uint64_t>((delay - delay / 3).count())));
}

void Machine::DialLater(const std::string& address) {
  s_.stage = Stage::kDialling;
  s_.linked = false;
  s_.walking.reset();
  s_.target = address;
  s_.dial_until.reset();
  s_.dial_at = now_ + NextDelay();
}

void Machine::LoseCoordinator(const std::string& detail) {
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

void Machine::DialFailed(Loss loss, const std::string& detail) {
  s_.linked = false;
  s_.stage = Stage::kDialling;
  s_.dial_until.reset();
  s_.dial_at.reset();
  s_.last_failure = detail.empty() ? Where(s_.target) + ": not reachable" : detail;
  if (now_ >= GiveUpAt()) {
    GiveUp();
    return;
  }
  if (loss == Loss::kUnauthenticated && !s_.refused_at) s_.refused_at = now_;
  const Duration patience = s_.in_pods ? kForOldAddress : Duration::zero();
  if (loss == Loss::kUnauthenticated && !s_.was_welcomed && now_ >= *s_.refused_at + patience) {
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

void Machine::SayThatItWaits() {
  const double limit = Whole(s_.options.join_timeout);
  if (s_.was_welcomed) {
    SayOnce(fmt::format("looking for a coordinator: {} (up to {} s)", s_.last_failure, limit));
    return;
  }
  // Indexed nodes meet at node 0.
  SayOnce(fmt::format("waiting for {} at {}: {} (up to {} s)", s_.options.indexed ? "node 0" : "the coordinator",
                      Where(s_.target), NotYet(s_.last_failure, s_.target), limit));
}

std::string Machine::Elsewhere() const {
  if (s_.standing_in) return s_.target;
  if (s_.was_welcomed && s_.target == s_.coordinator && !s_.coordinator_proven_dead && s_.attempt % 2 == 0) {
    return s_.target;
  }
  if (s_.endpoint.empty() && s_.was_welcomed) return s_.coordinator;
  return s_.endpoint;
}

void Machine::Walk(size_t index) {
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

void Machine::StandIn() {
  s_.walking.reset();
  s_.standing_in = true;
  out_.reason =
      s_.coordinator_proven_dead
          ? "the coordinator is gone: this node stands in for it"
          : fmt::format(
                "the coordinator is silent: this node takes its place once most of the {} of the round reach it",
                Counted(static_cast<size_t>(s_.round->node_count), "node"));
  SayOnce(out_.reason);
  out_.actions.push_back(
      CoordinateHere{*s_.round, s_.proof, std::vector<std::string>(s_.dead.begin(), s_.dead.end()), s_.known_term});
  DialTo("");
  s_.probes = 0;
  if (s_.proof) ProbeMissing("");
}

void Machine::ProbeMissing(const std::string& name) {
  for (const Successor& successor : s_.round->successors) {
    bool known = successor.name == s_.round->coordinator_node || successor.name == s_.self.name ||
                 successor.control_address.empty() || s_.dead.contains(successor.name);
    if (known || (!name.empty() && successor.name != name) || s_.probes >= kMostProbes) continue;
    ++s_.probes;
    out_.actions.push_back(Probe{successor.name, successor.control_address});
  }
}

}  // namespace muster::rendezvous::attendance

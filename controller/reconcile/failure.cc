// SPDX-License-Identifier: Apache-2.0
#include "controller/reconcile/failure.h"

#include <algorithm>
#include <csignal>
#include <map>
#include <set>
#include <utility>

#include "base/exit_codes.h"
#include "base/text.h"
#include "controller/api/pytorch_job.h"
#include "controller/api/reasons.h"
#include "controller/plan/pod_fields.h"
#include "controller/reconcile/deciding.h"
#include "controller/reconcile/next_step.h"

namespace muster::controller {
namespace {

constexpr int kSignals = 128;  // codes above it are signals, as shells and Kubernetes write them

// The end that made the pod fail: the earliest with a code other than 0. Times are whole seconds: within one, the
// container that trains goes first, init containers last (a sidecar is one, and is stopped after all others).
const ObservedEnd* FirstBadEnd(const ObservedPod& pod) {
  const auto order = [](const ObservedEnd& end) {
    const bool trains = end.container == kTrainerContainer || end.container == kPyTorchContainer;
    return std::tuple(end.finished.value_or(WallTime::max()), end.init, !trains);
  };
  const ObservedEnd* first = nullptr;
  for (const ObservedEnd& end : pod.ends) {
    if (end.exit_code == 0) continue;
    if (first == nullptr || order(end) < order(*first)) first = &end;
  }
  return first;
}

// Replaces control characters (C0 and C1 of Unicode) by spaces: they end lines, or move and colour in a terminal.
std::string Shown(std::string_view text) {
  std::string shown;
  for (size_t i = 0; i < text.size(); ++i) {
    const auto byte = static_cast<unsigned char>(text[i]);
    const auto next = static_cast<unsigned char>(i + 1 < text.size() ? text[i + 1] : 0);
    const bool c1 = byte == 0xC2 && next >= 0x80 && next <= 0x9F;
    if (c1) ++i;
    shown += c1 || byte < 0x20 || byte == 0x7F ? ' ' : text[i];
  }
  return shown;
}

// Joins the lines of a program's message to one line for people: "FIRST / SECOND".
std::string OneLine(std::string_view text) {
  std::string line;
  for (std::string_view part : Split(Strip(text), '\n')) {
    part = Strip(part);
    if (part.empty()) continue;
    if (!line.empty()) line += " / ";
    line += part;
  }
  return Shown(line);
}

void CopyFrom(const TerminationMessage& message, Failure* failure) {
  // The node rank of the plan goes first: an agent that knows no other pod reports node rank 0.
  if (!failure->node_rank) failure->node_rank = message.node_rank;
  failure->message = message.reason;
  if (!message.cause) return;
  const WorkerFailure& cause = *message.cause;
  if (cause.rank >= 0) failure->rank = cause.rank;
  if (cause.exit_code != 0) failure->exit_code = cause.exit_code;
  if (cause.signal != 0) failure->signal = SignalName(cause.signal);
  failure->oom = failure->oom || cause.oom_killed;
  std::string line = OwnLine(cause);
  // The reason of a worker without words repeats its rank and code, unless the container ended with another code.
  if (!line.empty() || cause.exit_code == message.exit_code) failure->message = std::move(line);
}

// All nodes of a round end for one failure: its cause, or the round, is their origin.
std::string OriginOf(const TerminationMessage& message, const std::string& pod) {
  if (message.cause) {
    return fmt::format("{} {} {}", message.cause->node, message.cause->pid, message.cause->unix_millis);
  }
  return WhereCauseIs(message.exit_code) != CauseIn::kNode ? fmt::format("round {}", message.round.value_or(-1)) : pod;
}

// True if the agent has ended the job for a reason that no restart changes, under every policy: no progress, or a
// worker that cannot start (docs/exit-codes.md).
bool NoRestartHelps(const ObservedEnd& end) {
  if (!end.message || !end.message->cause) return false;
  return end.exit_code == kExitNoProgress || NeverStarted(end);
}

// True if the pod was ended from outside the job.
bool IsDisruption(const ObservedPod& pod) {
  return pod.disrupted || pod.meta.deleted.has_value() || pod.reason == "Evicted" || pod.reason == "Preempting" ||
         pod.reason == "NodeLost" || pod.reason == "Shutdown" || pod.reason == "Terminated" ||
         pod.reason == "NodeShutdown";
}

// What Kubernetes says about an end that came from outside the container. No reason: it came from inside.
struct Outside {
  std::string reason, message;
  bool names_preemptor = false;
};

// The kubelet stops a container whose liveness or startup probe has failed, within the container's grace.
bool IsByProbe(const ObservedPod& pod, const ObservedEnd& end) {
  constexpr std::chrono::minutes kLongGrace{5};
  const bool stopped = end.exit_code == kSignals + SIGTERM || end.exit_code == kSignals + SIGKILL;
  return stopped && pod.event.reason == "Unhealthy" && end.finished && pod.event.last <= *end.finished &&
         *end.finished <= pod.event.last + kLongGrace;
}

Outside OutsideOf(const ObservedPod& pod, const ObservedEnd* end) {
  if (!pod.disruption.empty()) {
    const std::string& preemptor = pod.event.reason == "Preempted" ? pod.event.related : "";
    if (preemptor.empty()) return {pod.disruption, pod.disruption_message};
    return {pod.disruption, fmt::format("by pod {}: {}", preemptor, pod.disruption_message), true};
  }
  if (!pod.reason.empty()) return {pod.reason, pod.message};
  if (pod.meta.deleted) return {"Deleted", "the pod was deleted"};
  if (end != nullptr && IsByProbe(pod, *end)) return {pod.event.reason, pod.event.message};
  if (end != nullptr && end->sandbox_lost) return {"SandboxChanged", "the kubelet ended it and began the pod anew"};
  if (end != nullptr && end->unseen && end->reason == "StartError") {
    return {end->reason, fmt::format("its node's container runtime stopped while it was started: {}", end->text)};
  }
  if (end != nullptr && end->unseen) return {end->reason, "its node stopped under it, so nobody saw its end"};
  return {};
}

// The failure of `pod` by `end`. Null: no container of the pod ended badly.
PodFailure FailureBy(const ObservedPod& pod, const ObservedEnd* end, const PodRules& rules) {
  const bool by_code = rules.restart == RestartPolicy::kExitCode;
  PodFailure found;
  found.pod = pod.meta.name;
  found.job = pod.job;
  found.origin = pod.meta.name;
  Failure& failure = found.failure;
  failure.pod = pod.meta.name;
  failure.job = pod.job;
  failure.node = pod.node;
  failure.time = pod.meta.created.value_or(WallTime{});
  const Outside outside = OutsideOf(pod, end);
  failure.reason = outside.reason;
  failure.message = outside.message;
  failure.node_rank = rules.node_rank;
  failure.counted = !IsDisruption(pod) && (end == nullptr || (!end->unseen && !end->sandbox_lost));
  if (end != nullptr) {
    if (end->finished) failure.time = *end->finished;
    failure.container = end->container;
    failure.exit_code = end->exit_code;
    failure.oom = end->reason == "OOMKilled";
    if (failure.reason.empty()) failure.reason = end->reason;
    if (end->exit_code > kSignals && end->exit_code <= kSignals + 64 && !end->message) {
      failure.signal = SignalName(end->exit_code - kSignals);
    }
    if (end->message) {
      const TerminationMessage& message = *end->message;
      found.origin = OriginOf(message, pod.meta.name);
      found.told = message.reason.starts_with(kVerdictReason);
      CopyFrom(message, &failure);
      if (message.cause) failure.origin = found.origin;
      const bool elsewhere = message.cause && message.cause->node != message.node;
      if (elsewhere && !message.cause->host.empty()) found.elsewhere = message.cause;
      // An older agent has only the numbers.
      const bool by_numbers = message.max_restarts > 0 && message.restart_count >= message.max_restarts &&
                              (!by_code || message.exit_class == ExitClass::kRetryable);
      found.spent = message.cause.has_value() && (message.budget_used || by_numbers);
    } else if (!end->text.empty()) {
      failure.message = end->text;
    }
    // A worker that failed by itself is the cause. Else the container ended because it was told to.
    const bool by_worker = end->message && end->message->cause;
    if (!outside.reason.empty() && !by_worker) {
      failure.message =
          outside.message.empty() ? outside.reason : fmt::format("{}: {}", outside.reason, outside.message);
    }
    found.names_preemptor = outside.names_preemptor && !by_worker;
  }
  const bool lost_a_peer = end != nullptr && end->message && end->message->cause && end->message->cause->consequence;
  found.consequence = lost_a_peer || WhereCauseIs(failure.exit_code) == CauseIn::kPeer;
  failure.message = OneLine(failure.message);
  if (failure.reason.empty()) failure.reason = "Error";
  failure.next_step = NextStep(failure, pod, end != nullptr && NeverStarted(*end));
  const ExitClass exit_class = end == nullptr ? ExitClass::kRetryable
                               : end->message ? end->message->exit_class
                                              : Classify(end->exit_code);
  // If a child of the container's first process was killed for memory, the first process may end with any code.
  const bool by_bug = end != nullptr && exit_class == ExitClass::kFatal && end->reason != "OOMKilled";
  const bool says_so = rules.initializer && end != nullptr && end->message;
  const bool for_good = end != nullptr && NoRestartHelps(*end);
  found.fatal =
      failure.counted && (rules.restart == RestartPolicy::kNever || ((by_code || says_so) && by_bug) || for_good);
  return found;
}

// A failure that a restart in place has overcome. The pod ended later, or has not ended: it counts from the worker's
// end, unless the clock of the node is wrong.
PodFailure Overcome(const ObservedPod& pod, const ObservedEnd& end, const PodRules& rules) {
  PodFailure found = FailureBy(pod, &end, rules);
  const WallTime ended{std::chrono::milliseconds(std::max<int64_t>(0, end.message->cause->unix_millis))};
  if (ended != WallTime{} && (!end.finished || ended < *end.finished)) found.failure.time = ended;
  found.failure.reason = found.failure.oom ? "OOMKilled" : "Error";  // not the pod's own
  found.failure.message = OneLine(OwnLine(*end.message->cause));
  found.failure.counted = true;
  found.failure.next_step = NextStep(found.failure, pod, NeverStarted(end));
  found.fatal = found.spent = false;
  return found;
}

bool IsSame(const Failure& failure, const Failure& other) {
  if (failure.pod_uid.empty() && !failure.origin.empty() && !other.origin.empty()) {
    return other.origin == failure.origin;
  }
  if (other.ended_pod() != failure.ended_pod() || other.container != failure.container) return false;
  return failure.pod_uid.empty() || (other.pod_uid == failure.pod_uid && other.time == failure.time);
}

// Whether `message` begins with `host`, as "host.subdomain:port: ..." or "host: ..." does.
bool BeginsWithHost(std::string_view message, std::string_view host) {
  return !host.empty() && message.size() > host.size() && message.substr(0, host.size()) == host &&
         (message[host.size()] == '.' || message[host.size()] == ':');
}

// Keeps kMostFailures, the newest last. Drops first what has the origin of an earlier one, which is its cause, then the
// oldest. This does not depend on the order of the input: a dropped failure that is found again is dropped again.
void Shorten(std::vector<Failure>* failures) {
  std::stable_sort(failures->begin(), failures->end(), [](const Failure& a, const Failure& b) {
    return std::tie(a.time, a.pod, a.pod_uid, a.container) < std::tie(b.time, b.pod, b.pod_uid, b.container);
  });
  size_t excess = failures->size() - kMostFailures;
  std::set<std::string> origins;
  std::erase_if(*failures, [&](const Failure& failure) {
    const bool repeats = !failure.origin.empty() && !origins.insert(failure.origin).second;
    if (!repeats || excess == 0) return false;
    --excess;
    return true;
  });
  failures->erase(failures->begin(), failures->begin() + static_cast<ptrdiff_t>(excess));
}

}  // namespace

PodRules RulesOf(const ObservedPod& pod, const PlannedJob& planned) {
  return {.restart = planned.restart,
          .agent = planned.agent,
          .node_rank = planned.step == Step::kTrainer ? pod.index : std::nullopt,
          .initializer = planned.step == Step::kDatasetInitializer || planned.step == Step::kModelInitializer};
}

std::optional<PodFailure> FailureOf(const ObservedPod& pod, const PodRules& rules) {
  const ObservedEnd* decides = DecidingEnd(pod);
  if (decides != nullptr && decides->exit_code == 0 && !IsDisruption(pod)) return std::nullopt;
  if (decides != nullptr && pod.phase != "Failed" && !pod.meta.deleted) return FailureBy(pod, decides, rules);
  const ObservedEnd* end = FirstBadEnd(pod);
  // muster-initializer says of its own code that a retry would fail again. Another initializer ends with 1 for all.
  const bool says_so =
      rules.initializer && end != nullptr && end->message && end->message->exit_class == ExitClass::kFatal;
  // A container that is restarted does not fail its pod. But under the agent a code that exit-code calls fatal counts.
  if (!HasFailed(pod) && !says_so &&
      (end == nullptr || !rules.agent || rules.restart != RestartPolicy::kExitCode || end->init ||
       Classify(end->exit_code) != ExitClass::kFatal)) {
    return std::nullopt;
  }
  return FailureBy(pod, end, rules);
}

const std::string& HostOf(const ObservedPod& pod) { return pod.host.empty() ? pod.meta.name : pod.host; }

std::optional<PodFailure> NewestFailureOf(const ObservedPod& pod, const PodRules& rules) {
  const ObservedEnd* newest = nullptr;
  for (const ObservedEnd& end : pod.ends) {
    if (end.exit_code == 0) continue;
    if (newest == nullptr || end.finished > newest->finished) newest = &end;
  }
  return newest == nullptr ? std::nullopt : std::optional(FailureBy(pod, newest, rules));
}

void NameCauses(const std::vector<RankedPod>& pods, const std::vector<PodFailure*>& failures) {
  const auto is_elsewhere = [](const PodFailure* failure) { return failure->elsewhere.has_value(); };
  if (std::none_of(failures.begin(), failures.end(), is_elsewhere)) return;
  std::map<std::string_view, std::vector<const RankedPod*>> hosts, nodes;  // by their own names, the newest last
  for (const RankedPod& one : pods) {
    hosts[HostOf(*one.pod)].push_back(&one);
    for (const ObservedEnd& end : one.pod->ends) {
      if (end.message) nodes[end.message->node].push_back(&one);
    }
  }
  for (auto* names : {&hosts, &nodes}) {
    for (auto& [name, of_name] : *names) {
      std::stable_sort(of_name.begin(), of_name.end(), [](const RankedPod* a, const RankedPod* b) {
        return a->pod->meta.created < b->pod->meta.created;
      });
    }
  }
  for (PodFailure* failure : failures) {
    const auto cause = std::exchange(failure->elsewhere, std::nullopt);
    if (!cause) continue;
    const bool is_host = hosts.contains(cause->host);
    const auto& of_name = is_host ? hosts[cause->host] : nodes[cause->node];
    const WallTime ended{std::chrono::milliseconds(cause->unix_millis)};
    const RankedPod* found = of_name.empty() ? nullptr : of_name.back();  // if none existed then, a clock is wrong
    for (const RankedPod* one : of_name) {
      if (cause->unix_millis != 0 && one->pod->meta.created <= ended) found = one;
    }
    Failure& told = failure->failure;
    told.reported_by = failure->pod;
    told.pod = found == nullptr ? cause->host : found->pod->meta.name;
    if (found != nullptr) told.job = found->pod->job;
    told.node = found == nullptr ? "" : found->pod->node;
    told.node_rank = found == nullptr ? std::nullopt : found->node_rank;
    told.next_step = found == nullptr ? "" : NextStep(told, *found->pod, cause->pid == 0);
  }
}

std::optional<PodFailure> OvercomeBy(const ObservedPod& pod, const PodRules& rules) {
  for (const ObservedEnd& end : pod.ends) {
    if (end.exit_code != 0 || !end.message || !end.message->cause || end.message->restart_count == 0) continue;
    // With another code inside, the command hides a failure that no restart has overcome.
    if (end.message->inner_exit_code || end.message->cause->exit_code == 0) continue;
    return Overcome(pod, end, rules);
  }
  return std::nullopt;
}

PodFailure OvercomeBy(const ObservedPod& pod, const PodRules& rules, const WorkerFailure& cause) {
  ObservedEnd end;
  end.container = pod.replica_type.empty() ? kTrainerContainer : kPyTorchContainer;
  end.message.emplace();
  end.message->cause = cause;
  if (cause.host == HostOf(pod)) end.message->node = cause.node;
  return Overcome(pod, end, rules);
}

std::vector<PodFailure> AllOvercomeBy(const ObservedPod& pod, const PodRules& rules,
                                      const std::optional<AgentsSaid>& agents) {
  std::vector<PodFailure> all;
  if (auto told = OvercomeBy(pod, rules)) all.push_back(*std::move(told));
  const bool said = agents && agents->pod_uid == pod.meta.uid && agents->overcome;
  if (said) all.push_back(OvercomeBy(pod, rules, *agents->overcome));
  return all;
}

EventText RestartedInPods(const Failure& failure, bool with_container) {
  return {true, reason::kRestarted,
          fmt::format("{}; the training started again in its pods", Describe(failure, with_container))};
}

const PodFailure* RootCause(const std::vector<PodFailure>& failures) {
  auto rank = [](const PodFailure& failure) {
    // An evicted or stopped pod is the cause only if there is no other.
    return std::tuple(!failure.fatal, failure.consequence, !failure.failure.counted, failure.failure.time);
  };
  const auto first = std::min_element(failures.begin(), failures.end(),
                                      [&rank](const auto& a, const auto& b) { return rank(a) < rank(b); });
  return first == failures.end() ? nullptr : &*first;
}

int ExcuseConsequences(const std::vector<RankedPod>& pods, std::vector<Failure>* known,
                       std::vector<PodFailure>* failures) {
  std::vector<std::pair<std::string_view, const Failure*>> taken;  // with the peers' host names, or pod names
  for (const PodFailure& one : *failures) {
    if (!one.failure.counted) taken.emplace_back(one.pod, &one.failure);
  }
  for (const Failure& one : *known) {
    if (!one.counted) taken.emplace_back(one.ended_pod(), &one);
  }
  int charged = 0;
  for (PodFailure& one : *failures) {
    Failure& failure = one.failure;
    if (!one.consequence || !failure.counted || one.fatal) continue;
    const auto is_near = [&failure](WallTime time) {
      return time >= failure.time - kTakenWithin && time <= failure.time + kTakenWithin;
    };
    const auto is_known =
        std::find_if(known->begin(), known->end(), [&](const Failure& other) { return IsSame(failure, other); });
    const bool was_excused = is_known != known->end() && !is_known->counted;
    const bool is_taken = std::any_of(pods.begin(), pods.end(), [&](const RankedPod& peer) {
      const ObservedPod& pod = *peer.pod;
      if (pod.meta.name == one.pod || !BeginsWithHost(failure.message, HostOf(pod))) return false;
      if (pod.meta.deleted && is_near(pod.told_to_end.value_or(*pod.meta.deleted))) return true;
      return std::any_of(taken.begin(), taken.end(), [&](const auto& other) {
        return (other.first == pod.meta.name || other.first.starts_with(fmt::format("{}-", HostOf(pod)))) &&
               is_near(other.second->time);
      });
    });
    failure.counted = !was_excused && !is_taken;
    if (!is_taken || is_known == known->end() || was_excused) continue;
    is_known->counted = false;
    ++charged;
  }
  return charged;
}

int RestartsUsed(const std::vector<const ObservedPod*>& pods, const std::vector<PodFailure>& failures, int max_restarts,
                 int said) {
  int charged = std::min(said, max_restarts);  // by the agents: the same number on all nodes of a round
  for (const ObservedPod* pod : pods) {
    for (const ObservedEnd& end : pod->ends) {
      if (end.message) charged = std::clamp(end.message->restart_count, charged, std::max(charged, max_restarts));
    }
  }
  std::set<std::string> origins;
  for (const PodFailure& failure : failures) {
    const bool is_one_of_these = std::any_of(
        pods.begin(), pods.end(), [&failure](const ObservedPod* pod) { return pod->meta.name == failure.pod; });
    // A failure for which the agents ended (`spent`) is in their own number already.
    if (is_one_of_these && failure.failure.counted && !failure.fatal && !failure.spent) origins.insert(failure.origin);
  }
  return charged + static_cast<int>(origins.size());
}

std::vector<Failure> Remember(const std::vector<PodFailure>& found, std::vector<Failure>* known) {
  std::vector<Failure> all = *known, added;
  for (const PodFailure& one : found) {
    const auto known_one =
        std::find_if(all.begin(), all.end(), [&one](const Failure& other) { return IsSame(one.failure, other); });
    if (known_one == all.end()) {
      all.push_back(one.failure);
    } else if (one.names_preemptor) {
      known_one->message = one.failure.message;
    }
  }
  if (all.size() > kMostFailures) Shorten(&all);
  for (const Failure& one : all) {
    const bool is_known =
        std::any_of(known->begin(), known->end(), [&one](const Failure& other) { return IsSame(one, other); });
    if (!is_known) added.push_back(one);
  }
  *known = std::move(all);
  return added;
}

std::string Describe(const Failure& failure, bool with_container) {
  std::string who;
  if (failure.rank) {
    who = fmt::format("rank {} on ", *failure.rank);
  } else if (failure.node_rank) {
    who = fmt::format("node {}: ", *failure.node_rank);
  }
  std::string how;
  if (failure.exit_code == 0) {
    how = fmt::format("failed ({})", failure.reason);
  } else if (!failure.signal.empty()) {
    how = fmt::format("was killed by {}", failure.signal);
  } else {
    how = fmt::format("ended with {}", DescribeExit(failure.exit_code));
  }
  std::string text = fmt::format("{}pod {}", who, failure.pod);
  const bool is_usual = failure.container == kTrainerContainer || failure.container == kDatasetContainer ||
                        failure.container == kModelContainer;
  const bool names_container = !failure.container.empty() && (with_container || !is_usual);
  if (names_container) text += fmt::format(", container {}", failure.container);
  if (!failure.node.empty()) text += fmt::format(" (node {})", failure.node);
  text += fmt::format(" {}", how);
  if (failure.oom) text += ", out of memory";
  if (!failure.message.empty()) text += fmt::format(": {}", failure.message);
  return text;
}

std::string Explain(const Failure& failure, bool with_container) {
  std::string text = Describe(failure, with_container);
  if (!failure.next_step.empty()) text += fmt::format("; {}", failure.next_step);
  return text;
}

}  // namespace muster::controller

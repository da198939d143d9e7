// SPDX-License-Identifier: Apache-2.0
#include "controller/reconcile/pytorch_replicas.h"

#include <algorithm>
#include <csignal>
#include <map>
#include <set>
#include <utility>

#include "base/exit_codes.h"
#include "base/text.h"
#include "controller/reconcile/deciding.h"
#include "controller/reconcile/replacement.h"
#include "controller/reconcile/run_success.h"

namespace muster::controller {
namespace {

constexpr std::chrono::seconds kFirstPause{5}, kLongestPause{300};
constexpr std::chrono::minutes kMemory{15};
constexpr int kMostDoublings = 6;
constexpr char kUnnamedRun[] = "none";  // torchrun's --rdzv-id, if nobody sets it

// The planned replica that `pod` belongs to. Null: none.
Replica* Find(const PyTorchPlan& plan, const ObservedPod& pod, Replicas* replicas) {
  size_t first = 0;
  for (const PlannedReplicas& planned : plan.replicas) {
    if (ReplicaLabel(planned.type) == pod.replica_type) {
      return pod.index && *pod.index < planned.count ? &replicas->all[first + static_cast<size_t>(*pod.index)]
                                                     : nullptr;
    }
    first += static_cast<size_t>(planned.count);
  }
  return nullptr;
}

PodRules RulesOf(const Replica& replica) {
  return {.restart = replica.planned->restart,
          .agent = replica.planned->agent,
          .node_rank = replica.planned->first_rank + replica.index};
}

// Adds the uid and the rank. An origin that is the pod's name becomes its uid, since names are used again. A wait for
// the master's name that lasted too long is not counted: it is the cluster that did not answer.
void Complete(const PyTorchPlan& plan, const ObservedPod& pod, PodFailure* failure) {
  const Failure& said = failure->failure;
  if (said.container == kWaitContainer && said.exit_code == kExitRendezvousTimeout) failure->failure.counted = false;
  if (failure->origin == pod.meta.name) failure->origin = pod.meta.uid;
  failure->failure.pod_uid = pod.meta.uid;
  failure->failure.origin = failure->origin;
  if (!failure->failure.rank && plan.pods_are_ranks) failure->failure.rank = failure->failure.node_rank;
}

std::vector<RankedPod> PodsOf(const Replicas& replicas) {
  std::vector<RankedPod> pods;
  for (const Replica& replica : replicas.all) {
    if (replica.pod != nullptr) pods.push_back({replica.pod, RulesOf(replica).node_rank});
  }
  return pods;
}

// The cause of `peer`: itself, unless its code is fatal or it waited; else one of the same origin. Null: not known.
const Failure* CauseOf(const std::vector<Failure>& known, const Failure& peer) {
  const auto is_cause = [](const Failure& one) {
    if (one.container == kWaitContainer) return false;  // the training had not begun
    return !one.counted || Classify(one.exit_code) != ExitClass::kFatal;
  };
  if (is_cause(peer)) return &peer;
  const auto cause = std::find_if(known.begin(), known.end(), [&](const Failure& other) {
    return is_cause(other) && !peer.origin.empty() && other.origin == peer.origin;
  });
  return cause == known.end() ? nullptr : &*cause;
}

// True if the pod was killed from outside. A crash or an abort does not count: a lost peer may lead to it.
bool WasKilled(const Failure& failure) {
  return failure.oom || !failure.counted || failure.exit_code == 128 + SIGKILL || failure.exit_code == 128 + SIGTERM;
}

// The peer's failure that explains why `pod` ended at `end`. If the peer's failure is a consequence itself,
// kPeerFailureShows counts from its cause, so that a bug still ends the job. Null: no failure explains it.
const Failure* ExplanationOf(const std::vector<Failure>& known, const ObservedPod& pod, WallTime end) {
  for (const Failure& peer : known) {
    // Within one second the order of two ends is not known. But a pod that was killed did not end because of another.
    const bool came_first = peer.time < end || (peer.time == end && WasKilled(peer));
    const bool was_under_way = pod.meta.created && *pod.meta.created < peer.time && came_first;
    // An earlier pod of the same name is not a peer: it was gone before this one was created, even in the same second.
    if (peer.ended_pod() == pod.meta.name || !was_under_way) continue;
    const Failure* cause = CauseOf(known, peer);
    if (cause != nullptr && end <= cause->time + kPeerFailureShows) return cause;
  }
  return nullptr;
}

// True if the pod was deleted before it ended, as far as is known: a program may end with 0 then.
bool WasToldToEnd(const ObservedPod& pod) {
  if (!pod.meta.deleted) return false;
  return !pod.told_to_end || pod.ends.empty() ||
         std::any_of(pod.ends.begin(), pod.ends.end(),
                     [&pod](const ObservedEnd& end) { return !end.finished || *end.finished >= *pod.told_to_end; });
}

// True if an earlier pass has charged the end of this pod and let the job go on.
bool IsCharged(const PyTorchJobStatus& status, const ObservedPod& pod) {
  return std::any_of(status.counted.begin(), status.counted.end(),
                     [&pod](const CountedPod& one) { return one.uid == pod.meta.uid && one.restarts > pod.restarts; });
}

// True if the pod is from before a suspension and still ends, and the job does not run again yet.
bool IsOfBeforeTheResume(const PyTorchJobStatus& status, const ObservedPod& pod) {
  if (!pod.meta.deleted || status.conditions.empty()) return false;
  const JobCondition& state = status.conditions.back();
  return state.type == "Suspended" && (state.status || (pod.meta.created && *pod.meta.created < state.since));
}

void Judge(const PyTorchJobStatus& status, const std::vector<Failure>& known, Replica* replica) {
  PodFailure& failure = *replica->failure;
  const ObservedPod& pod = *replica->pod;
  // Never: every end but a deletion is fatal, also an eviction.
  if (replica->planned->restart == RestartPolicy::kNever) failure.fatal = !pod.meta.deleted;
  if (replica->planned->restart != RestartPolicy::kExitCode || !failure.fatal) return;
  // This container waits for the master, which did not come in time. A retry may succeed, whatever the exit code.
  failure.fatal = failure.failure.container != kWaitContainer;
  if (!failure.fatal) return;
  const bool knows_cause = std::any_of(pod.ends.begin(), pod.ends.end(),
                                       [](const ObservedEnd& end) { return end.message && end.message->cause; });
  if (knows_cause) return;
  const Failure* cause = ExplanationOf(known, pod, failure.failure.time);
  replica->consequence = cause != nullptr || IsCharged(status, pod);
  failure.fatal = !replica->consequence;
  if (cause != nullptr) failure.origin = failure.failure.origin = cause->origin;
}

// When the replicas that failures of others name as their cause failed, by the pod's name. Their own pods may not have
// ended yet.
std::map<std::string_view, WallTime> CausesOfOthers(const Replicas& replicas) {
  std::map<std::string_view, WallTime> causes;
  for (const Replica& replica : replicas.all) {
    if (!replica.failure || replica.failure->failure.reported_by.empty()) continue;
    WallTime& last = causes[replica.failure->failure.pod];
    last = std::max(last, replica.failure->failure.time);
  }
  return causes;
}

// If the run of the agents has succeeded, and with it the job, the replicas that had no part in it are idle. A node
// rank of 1 or more shows that the run was not of one pod alone.
void LeaveOutIdle(const PyTorchJob& job, const PyTorchPlan& plan, Replicas* replicas) {
  std::vector<const ObservedPod*> pods;
  for (const Replica& replica : replicas->all) {
    if (replica.pod != nullptr && !replica.old && replica.planned->agent) pods.push_back(replica.pod);
  }
  const bool named = job.elastic && !job.elastic->rdzv_id.empty();
  const auto ended = RunSucceededAt(named ? job.elastic->rdzv_id : kUnnamedRun, pods, 1);
  if (!ended) return;
  for (Replica& replica : replicas->all) {
    if (replica.old || replica.succeeded || !replica.planned->agent) continue;
    replica.idle = replica.pod == nullptr || CameTooLate(*replica.pod, *ended) || FoundNobody(*replica.pod, *ended);
  }
  const bool succeeded = HaveSucceeded(plan, *replicas);
  for (Replica& replica : replicas->all) {
    replica.idle = replica.idle && succeeded;
    if (replica.idle) replica.failure.reset();
  }
}

}  // namespace

int RestartsBefore(const PyTorchPlan& plan, const Replicas& replicas) {
  const int budget = plan.budget.value_or(kUnlimitedRestarts);
  int before = budget;
  for (const Replica& replica : replicas.all) {
    if (replica.pod == nullptr || replica.old) continue;
    const auto left = ParseInt(replica.pod->meta.Annotation(kRestartsLeftAnnotation));
    before = std::min(before, left ? budget - static_cast<int>(std::clamp<int64_t>(*left, 0, budget)) : 0);
  }
  return before;
}

int Replicas::Count(ReplicaType type, bool (Replica::*is)() const) const {
  return static_cast<int>(std::count_if(all.begin(), all.end(), [&](const Replica& replica) {
    return replica.planned->type == type && (replica.*is)();
  }));
}

std::map<ReplicaType, int> Replicas::CountCauses(bool (Replica::*is)() const) const {
  std::map<std::string_view, const Replica*> by_pod;
  for (const Replica& replica : all) {
    if (replica.pod != nullptr) by_pod[replica.pod->meta.name] = &replica;
  }
  std::set<const Replica*> causes;
  for (const Replica& replica : all) {
    if (!(replica.*is)()) continue;
    const auto named = by_pod.find(replica.failure->failure.pod);
    causes.insert(named == by_pod.end() ? &replica : named->second);
  }
  std::map<ReplicaType, int> counts;
  for (const Replica* cause : causes) ++counts[cause->planned->type];
  return counts;
}

bool HaveSucceeded(const PyTorchPlan& plan, const Replicas& replicas) {
  if (plan.has_master) {
    return replicas.Count(ReplicaType::kMaster, &Replica::IsDone) == plan.Find(ReplicaType::kMaster)->count;
  }
  const PlannedReplicas* workers = plan.Find(ReplicaType::kWorker);
  if (workers == nullptr) return false;
  const int succeeded = replicas.Count(ReplicaType::kWorker, &Replica::IsDone);
  return succeeded > 0 && (plan.elastic || succeeded == workers->count);
}

Replicas PlaceReplicas(const PyTorchJob& job, const PyTorchPlan& plan, const Observed& observed, WallTime now) {
  Replicas replicas;
  for (const PlannedReplicas& planned : plan.replicas) {
    const size_t first = replicas.all.size();
    for (int index = 0; index < planned.count; ++index) {
      replicas.all.push_back({&planned, index, ReplicaObjectName(job.meta, planned.type, index)});
    }
    const auto& counts = job.status.Of(planned.type);
    for (const auto& [from, to] : ReadIndexRanges(counts ? counts->succeeded_indexes : "")) {
      for (int index = from; index <= std::min(to, planned.count - 1); ++index) {
        Replica& replica = replicas.all[first + static_cast<size_t>(index)];
        replica.succeeded = replica.recorded = true;
      }
    }
  }
  const bool by_attempt = plan.restart == RestartScope::kJob && !plan.RestartsInPlace();
  for (const ObservedPod& pod : observed.pods) {
    const bool is_own = pod.meta.IsControlledBy(job.meta);
    if (!is_own && pod.meta.Controller() != nullptr) continue;  // it belongs to another owner
    Replica* found = Find(plan, pod, &replicas);
    if (found == nullptr) {
      if (is_own) replicas.extra.push_back(&pod);
      continue;
    }
    if (!is_own) replicas.orphans.push_back(&pod);
    // Of several pods with the same labels, the one with the name that Muster gives.
    if (found->pod == nullptr || pod.meta.name == found->name) found->pod = &pod;
  }
  for (Replica& replica : replicas.all) {
    if (replica.pod == nullptr) continue;
    replica.old =
        (by_attempt && replica.pod->attempt < job.status.attempt) || IsOfBeforeTheResume(job.status, *replica.pod);
    if (replica.old) continue;
    replica.succeeded = replica.succeeded || HasSucceeded(*replica.pod, now);
    replica.recorded = replica.recorded || (replica.succeeded && !WasToldToEnd(*replica.pod));
    if (replica.succeeded) continue;
    replica.failure = FailureOf(*replica.pod, RulesOf(replica));
    if (replica.failure) Complete(plan, *replica.pod, &*replica.failure);
  }
  LeaveOutIdle(job, plan, &replicas);
  std::vector<PodFailure*> found;
  for (Replica& replica : replicas.all) {
    if (replica.failure) found.push_back(&*replica.failure);
  }
  NameCauses(PodsOf(replicas), found);
  // Retryable failures first: they may explain fatal ones. Then in order of time: earlier ones may explain later ones.
  std::vector<Failure> known = job.status.failures;
  std::vector<Replica*> failed;
  for (Replica& replica : replicas.all) {
    if (!replica.failure) continue;
    failed.push_back(&replica);
    if (!replica.failure->fatal) known.push_back(replica.failure->failure);
  }
  std::stable_sort(failed.begin(), failed.end(), [](const Replica* a, const Replica* b) {
    return a->failure->failure.time < b->failure->failure.time;
  });
  for (Replica* replica : failed) {
    Judge(job.status, known, replica);
    if (replica->consequence) known.push_back(replica->failure->failure);
  }
  return replicas;
}

Charged Charge(const PyTorchPlan& plan, const Replicas& replicas, const std::optional<AgentsSaid>& agents,
               PyTorchJobStatus* status) {
  // How many restarts each failure was charged with, by its origin: one, and those before it that nobody saw.
  std::map<std::string, int> charged_for;
  for (const Failure& failure : status->failures) {
    if (failure.counted) charged_for[failure.origin] = kUnlimitedRestarts;
  }
  std::vector<PodFailure> overcome;
  if (plan.restart == RestartScope::kJob) {
    int in_place = 0;
    for (const Replica& replica : replicas.all) {
      if (replica.pod == nullptr || replica.old || !replica.planned->agent) continue;
      if (agents && agents->pod_uid == replica.pod->meta.uid) in_place = std::max(in_place, agents->restarts);
      // They are known by their origin: any of the pods may tell of one.
      for (PodFailure& failure : AllOvercomeBy(*replica.pod, RulesOf(replica), agents)) {
        overcome.push_back(std::move(failure));
      }
      for (const ObservedEnd& end : replica.pod->ends) {
        if (end.message) in_place = std::max(in_place, end.message->restart_count);
      }
    }
    in_place = std::min(in_place, plan.budget.value_or(kUnlimitedRestarts));
    if (in_place > 0) status->restarts = std::max(status->restarts, RestartsBefore(plan, replicas) + in_place);
  }
  std::vector<PodFailure> found;
  std::vector<CountedPod> counted;
  for (const Replica& replica : replicas.all) {
    if (replica.pod == nullptr || replica.idle) continue;
    const ObservedPod& pod = *replica.pod;
    const auto known = std::find_if(status->counted.begin(), status->counted.end(),
                                    [&pod](const CountedPod& one) { return one.uid == pod.meta.uid; });
    const int before = known == status->counted.end() ? 0 : known->restarts;
    std::optional<PodFailure> failure = replica.failure;
    const bool ended = failure && !failure->fatal && failure->failure.counted;
    const int now = replica.old ? before : std::max(before, pod.restarts + (ended ? 1 : 0));
    if (now > 0) counted.push_back({pod.meta.uid, now});
    if (!failure && now > before) {
      failure = NewestFailureOf(pod, RulesOf(replica));
      if (failure) Complete(plan, pod, &*failure);
    }
    if (now > before) {
      // One failure that ends several pods is charged once. Agents that end for one (`spent`) have charged it before.
      // The kubelet tells of the last end alone. Of those before it, which nobody saw, so many were the kubelet's as it
      // has begun the pod anew. The others are taken to be of the last one's kind: a node that was away has ended the
      // container several times, or the container fails again and again.
      const bool is_free = replica.consequence || (plan.restart == RestartScope::kJob && failure && failure->spent);
      int more = 1 + std::max(0, now - before - 1 - pod.sandboxes_lost);
      if (failure && failure->origin != pod.meta.uid) {
        int& charged = charged_for[failure->origin];
        more = std::max(0, more - std::exchange(charged, std::max(charged, more)));
      }
      if (is_free) more = std::max(0, more - 1);
      // An end that is not the job's fault is never charged, also if the kubelet has started the container again.
      if (!failure || failure->failure.counted) status->restarts += more;
    }
    if (failure) found.push_back(*std::move(failure));
  }
  status->counted = std::move(counted);
  std::vector<PodFailure*> unnamed;
  for (auto* list : {&found, &overcome}) {
    for (PodFailure& failure : *list) unnamed.push_back(&failure);
  }
  NameCauses(PodsOf(replicas), unnamed);
  Charged charged;
  charged.failed = Remember(found, &status->failures);
  charged.overcome = Remember(overcome, &status->failures);
  return charged;
}

WallTime MadeAnewAt(const Replica& replica, const PyTorchJobStatus& status, WallTime now) {
  const Failure& failure = replica.failure->failure;
  const ObservedPod& pod = *replica.pod;
  // A failure in the future: a clock is wrong, and the time says nothing.
  if (failure.time > now) return now;
  const bool lived = pod.ran && pod.meta.created && failure.time - *pod.meta.created >= kGoodLife;
  if (lived) return now;
  const auto earlier = std::count_if(status.failures.begin(), status.failures.end(), [&](const Failure& other) {
    return other.ended_pod() == pod.meta.name && other.pod_uid != failure.pod_uid &&
           other.time + kMemory > failure.time;
  });
  // The status keeps only some failures. If all are recent, an earlier recent one of this pod may have been dropped.
  const bool forgets = status.failures.size() >= kMostFailures && status.failures.front().time + kMemory > failure.time;
  // A node that rejects pods does not get the next one at once.
  const int times = std::max(static_cast<int>(earlier), forgets ? 1 : 0) + (pod.ran ? 0 : 1);
  if (times == 0) return now;
  const auto pause = kFirstPause * (1 << std::min(times - 1, kMostDoublings));
  return failure.time + std::min<std::chrono::seconds>(pause, kLongestPause);
}

void ForgetSuccesses(PyTorchJobStatus* status) {
  for (const ReplicaType type : kReplicaTypes) {
    if (status->Of(type)) status->Of(type)->succeeded_indexes.clear();
  }
}

void CountReplicas(const PyTorchJob& job, const PyTorchPlan& plan, const Replicas& replicas, PyTorchJobStatus* status) {
  const auto causes = CausesOfOthers(replicas);
  for (const ReplicaType type : kReplicaTypes) {
    if (plan.Find(type) == nullptr) {
      status->Of(type).reset();
      continue;
    }
    ReplicaStatus counts;
    std::set<int> succeeded;
    counts.selector = ReplicaSelector(job.meta, type);
    for (const Replica& replica : replicas.all) {
      if (replica.planned->type != type) continue;
      if (replica.succeeded) {
        ++counts.succeeded;
        if (replica.recorded) succeeded.insert(replica.index);
        continue;
      }
      if (replica.pod == nullptr || replica.old) continue;
      const bool goes = replica.pod->phase == "Running" && replica.pod->meta.deleted;
      const auto cause = causes.find(replica.pod->meta.name);
      const bool ends = cause != causes.end() && replica.pod->meta.created <= cause->second;  // a new pod has the name
      if (replica.failure || replica.pod->phase == "Failed" || goes || ends) {
        ++counts.failed;
      } else if (replica.Runs()) {
        ++counts.active;
      }
    }
    counts.succeeded_indexes = WriteIndexes(succeeded);
    status->Of(type) = std::move(counts);
  }
}

bool WasWhole(const PyTorchPlan& plan, const PyTorchJobStatus& status) {
  return std::all_of(plan.replicas.begin(), plan.replicas.end(), [&status](const PlannedReplicas& planned) {
    const auto& counts = status.Of(planned.type);
    return counts && counts->active + counts->succeeded >= planned.count;
  });
}

}  // namespace muster::controller

// SPDX-License-Identifier: Apache-2.0
#include "controller/reconcile/train_job_progress.h"

#include <algorithm>
#include <set>

#include "controller/reconcile/deciding.h"
#include "controller/reconcile/failure.h"
#include "controller/reconcile/run_success.h"

namespace muster::controller {
namespace {

std::optional<Placed::End> FailureOfJob(const ObservedJob& job, const std::vector<const ObservedPod*>& pods) {
  if (job.failed_at) return Placed::End{*job.failed_at, job.failed_reason, job.failed_message};
  if (!job.backoff_limit || job.complete) return std::nullopt;
  int failed = 0;
  WallTime last{};
  for (const ObservedPod* pod : pods) {
    if (!HasFailed(*pod)) continue;
    ++failed;
    last = std::max(last, pod->meta.created.value_or(WallTime{}));
    for (const ObservedEnd& end : pod->ends) last = std::max(last, end.finished.value_or(WallTime{}));
  }
  if (std::max(failed, job.failed) <= *job.backoff_limit) return std::nullopt;
  return Placed::End{last, kOverBudgetReason, kOverBudgetMessage};
}

// True if each index has a pod that has succeeded, and Kubernetes may not see it: deciding.h.
bool IsDone(const ObservedJob& job, const std::vector<const ObservedPod*>& pods, WallTime now) {
  if (job.complete || job.suspended || job.pods == 0) return false;
  std::set<int> succeeded;
  bool any = false;
  for (const ObservedPod* pod : pods) {
    if (!pod->index || !HasSucceeded(*pod, now)) continue;
    any = any || pod->phase != "Succeeded";
    succeeded.insert(*pod->index);
  }
  if (!any) return false;
  for (int index = 0; index < job.pods; ++index) {
    if (!succeeded.contains(index) && !HasCompleted(job, index)) return false;
  }
  return true;
}

// When the run of the Job's agents succeeded. It has the TrainJob's uid as its id.
std::optional<WallTime> RunEndedAt(const ObservedJob& job, const std::vector<const ObservedPod*>& pods) {
  const OwnerReference* owner = job.meta.Controller();
  if (job.complete || job.suspended || owner == nullptr) return std::nullopt;
  const auto said = RunSucceededAt(owner->uid, pods);
  return said ? said : UnseenRunEndedAt(job, pods);
}

// Whether all pods but `idle` have ended with the run, which succeeded at `ended`. Sets `idle`: those that came too
// late for it, or found none of its nodes.
bool IsOverWithout(const ObservedJob& job, const std::vector<const ObservedPod*>& pods, WallTime ended, WallTime now,
                   std::vector<const ObservedPod*>* idle) {
  std::vector<const ObservedPod*> late;
  std::set<int> succeeded, failed, comes;
  for (const ObservedPod* pod : pods) {
    if (!pod->index || *pod->index >= job.pods) continue;
    if (HasSucceeded(*pod, now)) {
      succeeded.insert(*pod->index);
    } else if (CameTooLate(*pod, ended) || FoundNobody(*pod, ended)) {
      comes.insert(*pod->index);
      late.push_back(pod);
    } else if (!StillRuns(*pod)) {
      if (!pod->meta.deleted) failed.insert(*pod->index);
    } else {
      return false;
    }
  }
  const auto is_explained = [&](int index) {
    return succeeded.contains(index) || comes.contains(index) || HasCompleted(job, index);
  };
  if (!std::all_of(failed.begin(), failed.end(), is_explained)) return false;
  *idle = std::move(late);
  return true;
}

// True if the Job is of an earlier attempt and must go. An initializer's goes only if it failed: its data stays.
bool IsOver(const ObservedJob& job, const PlannedJob& planned, const PodsByJob& pods, int attempt) {
  return job.attempt < attempt && (!IsInitializer(planned) || FailureOfJob(job, PodsOf(job, pods)));
}

bool IsMet(const Dependency& dependency, const std::vector<Placed>& all) {
  return std::all_of(all.begin(), all.end(), [&dependency](const Placed& other) {
    if (other.planned->replicated_job != dependency.job) return true;
    if (dependency.until == Dependency::Until::kComplete) return other.complete();
    return other.complete() || other.failed() || other.ready();
  });
}

}  // namespace

bool IsOverBudgetByOthers(const Placed& placed, const std::vector<Failure>& known) {
  if (placed.job == nullptr || !placed.failure || placed.failure->reason != kOverBudgetReason) return false;
  return std::any_of(known.begin(), known.end(), [&](const Failure& one) {
    return !one.counted && one.job == placed.job->meta.name && one.time >= placed.job->meta.created.value_or(one.time);
  });
}

PodsByJob GroupPods(const Observed& observed) {
  PodsByJob pods;
  // Pods of one Job follow one another. A pass looks at all pods several times, so the usual case hashes no uid.
  PodsByJob::value_type* last = nullptr;
  for (const ObservedPod& pod : observed.pods) {
    const OwnerReference* owner = pod.meta.Controller();
    if (owner == nullptr) continue;
    if (last == nullptr || last->first != owner->uid) last = &*pods.try_emplace(owner->uid).first;
    last->second.push_back(&pod);
  }
  return pods;
}

std::vector<const ObservedPod*> PodsOf(const ObservedJob& job, const PodsByJob& pods) {
  const auto found = pods.find(job.meta.uid);
  return found == pods.end() ? std::vector<const ObservedPod*>() : found->second;
}

bool IsScaledAway(const ObservedPod& pod, const PlannedJob& planned) {
  return planned.scales && pod.index && *pod.index >= planned.pods;
}

bool IsInitializer(const PlannedJob& planned) {
  return planned.step == Step::kDatasetInitializer || planned.step == Step::kModelInitializer;
}

std::vector<Placed> Place(const TrainJobPlan& plan, const Observed& observed, const TrainJobStatus& status,
                          WallTime now) {
  const PodsByJob pods = GroupPods(observed);
  std::unordered_map<std::string_view, const ObservedJob*> jobs;
  for (const ObservedJob& job : observed.jobs) {
    if (!job.meta.deleted) jobs[job.meta.name] = &job;
  }
  const std::set<std::string_view> completed(status.completed_jobs.begin(), status.completed_jobs.end());
  std::vector<Placed> all;
  for (const PlannedJob& planned : plan.jobs) {
    Placed& placed = all.emplace_back();
    placed.planned = &planned;
    placed.done = completed.contains(planned.name);
    const auto found = jobs.find(planned.name);
    // A Job with a higher attempt than the status was edited, or the status was. It counts as current.
    if (found == jobs.end() || IsOver(*found->second, planned, pods, status.attempt)) continue;
    placed.job = found->second;
    placed.pods = PodsOf(*placed.job, pods);
    if (planned.agent) placed.run_ended = RunEndedAt(*placed.job, placed.pods);
    placed.done = placed.done || IsDone(*placed.job, placed.pods, now) ||
                  (placed.run_ended && IsOverWithout(*placed.job, placed.pods, *placed.run_ended, now, &placed.idle));
    if (!placed.done) placed.failure = FailureOfJob(*placed.job, placed.pods);
  }
  return all;
}

std::vector<const ObservedJob*> LeftOver(const TrainJobPlan& plan, const Observed& observed, int attempt) {
  const PodsByJob pods = GroupPods(observed);
  std::unordered_map<std::string_view, const PlannedJob*> jobs;
  for (const PlannedJob& planned : plan.jobs) jobs[planned.name] = &planned;
  std::vector<const ObservedJob*> left;
  for (const ObservedJob& job : observed.jobs) {
    const auto planned = jobs.find(job.meta.name);
    if (planned == jobs.end() || job.meta.deleted) continue;
    if (IsOver(job, *planned->second, pods, attempt)) left.push_back(&job);
  }
  return left;
}

bool MayStart(const Placed& placed, const std::vector<Placed>& all) {
  return std::all_of(placed.planned->after.begin(), placed.planned->after.end(),
                     [&all](const Dependency& dependency) { return IsMet(dependency, all); });
}

bool Succeeded(const SuccessPolicy& policy, const std::vector<Placed>& all) {
  bool any = false;
  for (const Placed& placed : all) {
    const bool wanted =
        policy.jobs.empty() || std::count(policy.jobs.begin(), policy.jobs.end(), placed.planned->replicated_job) > 0;
    if (!wanted) continue;
    any = any || placed.complete();
    if (policy.all && !placed.complete()) return false;
  }
  return any;
}

std::vector<JobsStatus> CountJobs(const std::vector<Placed>& all, bool over, bool suspended) {
  std::vector<JobsStatus> counts;
  for (const Placed& placed : all) {
    auto found = std::find_if(counts.begin(), counts.end(), [&placed](const JobsStatus& count) {
      return count.name == placed.planned->replicated_job;
    });
    if (found == counts.end()) found = counts.insert(counts.end(), JobsStatus{placed.planned->replicated_job});
    if (placed.job == nullptr && !placed.done) {
      if (suspended && !over) ++found->suspended;
      continue;
    }
    if (placed.complete()) {
      ++found->succeeded;
    } else if (placed.failed()) {
      ++found->failed;
    } else if (over) {
      const bool any = std::any_of(placed.pods.begin(), placed.pods.end(), [&placed](const ObservedPod* pod) {
        return FailureOf(*pod, RulesOf(*pod, *placed.planned)).has_value();
      });
      if (any) ++found->failed;
    } else {
      if (placed.ready()) ++found->ready;
      if (placed.job->active > 0) ++found->active;
      if (placed.job->suspended) ++found->suspended;
    }
  }
  return counts;
}

}  // namespace muster::controller

// SPDX-License-Identifier: Apache-2.0
// How far the Jobs of a plan are: the Job and the pods of each planned Job, which Jobs may start, and the counts for
// the status. Pure.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "controller/plan/plan.h"
#include "controller/reconcile/observed.h"

namespace muster::controller {

// What the Job controller writes about a Job that has used up its backoffLimit.
inline constexpr char kOverBudgetReason[] = "BackoffLimitExceeded";
inline constexpr char kOverBudgetMessage[] = "Job has reached the specified backoff limit";

// A planned Job and what exists of it. A Job of an earlier attempt does not count, except an initializer's Job that has
// not failed: the data that it has fetched stays.
struct Placed {
  // Why the Job has failed, or will fail: the Job controller reports a failure about a second after the pod fails.
  struct End {
    WallTime at;
    std::string reason, message;
  };

  const PlannedJob* planned = nullptr;
  const ObservedJob* job = nullptr;  // null: there is none
  std::vector<const ObservedPod*> pods;
  std::optional<End> failure;
  // All its pods have succeeded, as their deciding containers say; or the agents' run has, without the pods of `idle`;
  // or the status has recorded that.
  bool done = false;
  std::vector<const ObservedPod*> idle;  // that came after the end of the run: nothing is left for them to do
  std::optional<WallTime> run_ended;     // when the run of its agents succeeded; of a Job that is not complete

  bool complete() const { return done || (job != nullptr && job->complete); }
  bool failed() const { return failure.has_value(); }
  bool runs() const { return job != nullptr && !complete() && !failed() && !job->suspended; }
  bool suspended() const { return job != nullptr && !complete() && !failed() && job->suspended; }
  // True if all pods are ready or have succeeded, as JobSet counts.
  bool ready() const { return job != nullptr && job->ready + job->succeeded >= job->pods; }
};

// True if the plan has fewer pods than this one's index: the Job controller will end the pod.
bool IsScaledAway(const ObservedPod& pod, const PlannedJob& planned);

bool IsInitializer(const PlannedJob& planned);

// True if the Job has used up its backoffLimit, and pods of it ended for no fault of the job. Kubernetes counts them,
// too.
bool IsOverBudgetByOthers(const Placed& placed, const std::vector<Failure>& known);

// The pods of each Job, by the Job's uid. They point into `observed`.
using PodsByJob = std::unordered_map<std::string_view, std::vector<const ObservedPod*>>;
PodsByJob GroupPods(const Observed& observed);
std::vector<const ObservedPod*> PodsOf(const ObservedJob& job, const PodsByJob& pods);

// In the plan's order. `status`: of the TrainJob.
std::vector<Placed> Place(const TrainJobPlan& plan, const Observed& observed, const TrainJobStatus& status,
                          WallTime now);

// Jobs with names of the plan that are left from an earlier attempt.
std::vector<const ObservedJob*> LeftOver(const TrainJobPlan& plan, const Observed& observed, int attempt);

// True if all dependencies of `placed` are met.
bool MayStart(const Placed& placed, const std::vector<Placed>& all);

bool Succeeded(const SuccessPolicy& policy, const std::vector<Placed>& all);

// status.jobsStatus: one entry per replicated job, in the plan's order. `over`: the TrainJob has ended. Then a Job that
// has neither completed nor failed counts as failed if one of its pods has failed. Otherwise it does not count.
// `suspended`: a Job that is to be made counts as suspended.
std::vector<JobsStatus> CountJobs(const std::vector<Placed>& all, bool over, bool suspended);

}  // namespace muster::controller

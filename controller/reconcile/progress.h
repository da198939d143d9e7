// How far the Jobs of a plan are: which Job and pods each planned one has, what waits for what, and what is counted.
// Pure.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "controller/plan/plan.h"
#include "controller/reconcile/observed.h"

namespace muster::controller {

// The Job controller's words about a Job that has used its backoffLimit up.
inline constexpr char kOverBudgetReason[] = "BackoffLimitExceeded";
inline constexpr char kOverBudgetMessage[] = "Job has reached the specified backoff limit";

// A planned Job and what there is of it. Jobs of an earlier attempt do not count, but for an initializer's that has not
// failed: what it has brought in stays.
struct Placed {
  // Why the Job has failed, or is bound to: the Job controller says so about a second after the pod.
  struct End {
    WallTime at;
    std::string reason, message;
  };

  const PlannedJob* planned = nullptr;
  const ObservedJob* job = nullptr;  // null: there is none
  std::vector<const ObservedPod*> pods;
  std::optional<End> failure;

  bool complete() const { return job != nullptr && job->complete; }
  bool failed() const { return failure.has_value(); }
  bool runs() const { return job != nullptr && !complete() && !failed() && !job->suspended; }
  // Enough pods are ready or done, as JobSet counts.
  bool ready() const { return job != nullptr && job->ready + job->succeeded >= job->pods; }
};

// The pod is beyond those that its Job is meant to have: the Job controller ends it.
bool IsScaledAway(const ObservedPod& pod, const PlannedJob& planned);

bool IsInitializer(const PlannedJob& planned);

// In the plan's order. `attempt`: of the trainer step.
std::vector<Placed> Place(const Plan& plan, const Observed& observed, int attempt);

// Jobs of the plan's names that an earlier attempt has left.
std::vector<const ObservedJob*> LeftOver(const Plan& plan, const Observed& observed, int attempt);

// Everything that `placed` waits for is there.
bool MayStart(const Placed& placed, const std::vector<Placed>& all);

bool Succeeded(const SuccessPolicy& policy, const std::vector<Placed>& all);

// status.jobsStatus: one entry a replicated job, in the plan's order. `over`: the TrainJob has ended, so a Job that has
// not is deleted: it counts as failed where one of its pods has, else not at all.
std::vector<JobsStatus> CountJobs(const std::vector<Placed>& all, bool over);

}  // namespace muster::controller

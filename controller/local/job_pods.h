// One batch/v1 Job as Kubernetes' Job controller runs it: which pods it needs now, and what its status says. Pure.
// Source: Kubernetes 1.34, pkg/controller/job: job_controller.go, indexed_job_utils.go, backoff_utils.go,
// pod_failure_policy.go, success_policy.go.
//
// Of the Indexed mode, which is the only one that plans have. Fields that count: completions, parallelism, suspend,
// backoffLimit, backoffLimitPerIndex, maxFailedIndexes, podFailurePolicy (onExitCodes, onPodConditions; FailJob,
// FailIndex, Ignore, Count), podReplacementPolicy, successPolicy, activeDeadlineSeconds, managedBy (not looked at).
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "base/clock.h"
#include "base/json_fields.h"
#include "base/status.h"

namespace muster::controller {

struct JobStep {
  std::vector<int> create;          // completion indexes of pods that have to be made now
  std::vector<std::string> remove;  // names of pods that have to go
  // Names of pods that have ended and are now in the status: their finalizer batch.kubernetes.io/job-tracking goes.
  std::vector<std::string> counted;
  Json status;                    // the Job's whole status
  std::optional<WallTime> again;  // then something is due, even if nothing changes
};

// `job`: as it is stored, with the status that the last step gave. `pods`: all that it controls, also those that have
// ended or are being deleted; each is counted once, as long as its finalizer is there. Pods follow one another with
// Kubernetes' pauses (10 s, doubling to 10 min) after failures. InvalidArgument: the Job cannot be read; names the
// path.
StatusOr<JobStep> StepJob(const Json& job, const std::vector<const Json*>& pods, WallTime now);

}  // namespace muster::controller

// One batch/v1 Job as Kubernetes' Job controller runs it: which pods it needs now, and what its status says. Pure.
// Source: Kubernetes 1.36, pkg/controller/job: job_controller.go, indexed_job_utils.go, backoff_utils.go.
//
// Of the Indexed mode, which is the only one that plans have. Fields that count: completions, parallelism, suspend,
// backoffLimit, backoffLimitPerIndex, maxFailedIndexes, podFailurePolicy (onExitCodes, onPodConditions; FailJob,
// FailIndex, Ignore, Count), podReplacementPolicy, successPolicy, activeDeadlineSeconds, managedBy (not looked at).
#pragma once

#include <map>
#include <optional>
#include <string>
#include <vector>

#include "base/clock.h"
#include "base/json_fields.h"
#include "base/status.h"

namespace muster::controller {

struct JobStep {
  std::vector<int> create;  // completion indexes of pods that have to be made now
  // With backoffLimitPerIndex: annotations that the pod of that index gets beside those of PodOfJob.
  std::map<int, Json> annotations;
  std::vector<std::string> remove;  // names of pods that have to go
  // Names of pods whose finalizer batch.kubernetes.io/job-tracking goes: the status has them, or must not have them
  // because they are removed from a Job that goes on.
  std::vector<std::string> counted;
  Json status;                    // the Job's whole status
  std::optional<WallTime> again;  // then something is due, even if nothing changes
};

// `job`: as it is stored, with the status that the last step gave. `pods`: all that it controls, also those that have
// ended or are being deleted; each is counted once, as long as its finalizer is there. Pods follow one another with
// Kubernetes' pauses (10 s, doubling to 10 min) after failures, measured by the pods that have failed and are still
// there: unlike in Kubernetes, one that somebody has deleted makes no pause, because it does not stay. One that is
// being deleted has to stay until it is in phase Succeeded or Failed and a step has counted it. InvalidArgument: the
// Job, or a pod, cannot be read; names the path.
StatusOr<JobStep> StepJob(const Json& job, const std::vector<const Json*>& pods, WallTime now);

}  // namespace muster::controller

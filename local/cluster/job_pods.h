// SPDX-License-Identifier: Apache-2.0
// Decides for one batch/v1 Job as Kubernetes' Job controller does: which pods it needs now, and its status. Pure.
// Source: Kubernetes 1.36, pkg/controller/job: job_controller.go, indexed_job_utils.go, backoff_utils.go.
//
// Only the Indexed mode, since plans have no other. Fields that count: completions, parallelism, suspend, backoffLimit,
// backoffLimitPerIndex, maxFailedIndexes, podFailurePolicy (onExitCodes, onPodConditions; FailJob, FailIndex, Ignore,
// Count), podReplacementPolicy, successPolicy, activeDeadlineSeconds. managedBy is not read.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <vector>

#include "base/clock.h"
#include "base/json_fields.h"
#include "base/status.h"

namespace muster::local {

struct JobStep {
  std::vector<int> create;  // completion indexes of the pods to create now
  // With backoffLimitPerIndex, by index: annotations for the new pod, in addition to those of PodOfJob.
  std::map<int, Json> annotations;
  std::vector<std::string> remove;  // names of pods to delete
  // Names of pods that lose the finalizer batch.kubernetes.io/job-tracking. The status has counted them, or must not
  // count them because they are removed from a Job that goes on.
  std::vector<std::string> counted;
  Json status;                    // the Job's whole status
  std::optional<WallTime> again;  // make a step then, even if nothing has changed
};

// `job`: as it is stored, with the status of the last step. `pods`: all pods that it controls, also those that have
// ended or are being deleted. Each pod is counted once, as long as it has its finalizer. After failures, new pods wait
// for Kubernetes' pauses (10 s, doubling to 10 min). Unlike in Kubernetes, a pause depends only on failed pods that
// still exist: a failed pod that somebody has deleted makes no pause. The caller keeps a pod that is being deleted
// until its phase is Succeeded or Failed and a step has counted it. InvalidArgument: the Job, or a pod, cannot be read;
// names the path.
StatusOr<JobStep> StepJob(const Json& job, const std::vector<const Json*>& pods, WallTime now);

}  // namespace muster::local

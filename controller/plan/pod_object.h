// SPDX-License-Identifier: Apache-2.0
// Makes a pod of a Job as Kubernetes' Job controller does, so that the Job controller counts it as its own. Pure;
// untrusted input. Source: job_controller.go (manageJob), indexed_job_utils.go.
#pragma once

#include <string>
#include <string_view>

#include "base/json_fields.h"
#include "base/status.h"

namespace muster::controller {

// A finalizer on pods of a Job. The Job controller removes it once it has counted the pod.
inline constexpr char kTrackingFinalizer[] = "batch.kubernetes.io/job-tracking";

// <job>-<index>-<5 letters>. The letters are a hash of the uid of the pod that is replaced.
std::string ReplacementPodName(std::string_view job, int index, std::string_view lost_uid);

// The pod `name` with completion index `index` of `job`, a batch/v1 Job as the API server has it.
// InvalidArgument: `job` has no valid metadata or template.
StatusOr<Json> PodOfJob(const Json& job, int index, const std::string& name);

}  // namespace muster::controller

// A pod of a Job as Kubernetes' Job controller makes it, so that it takes it for its own. Pure; outside bytes.
// Source: job_controller.go (manageJob), indexed_job_utils.go.
#pragma once

#include <string>
#include <string_view>

#include "base/json_fields.h"
#include "base/status.h"

namespace muster::controller {

// Of a pod of a Job: the Job controller takes it off once it has counted the pod.
inline constexpr char kTrackingFinalizer[] = "batch.kubernetes.io/job-tracking";

// <job>-<index>-<5 letters>; the letters come from the uid of the pod that it takes the place of.
std::string ReplacementPodName(std::string_view job, int index, std::string_view lost_uid);

// The pod `name` with completion index `index` of `job`, a batch/v1 Job as the API server has it.
// InvalidArgument: it has no metadata, or no template.
StatusOr<Json> PodOfJob(const Json& job, int index, const std::string& name);

}  // namespace muster::controller

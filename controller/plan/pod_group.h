// spec.podGroupPolicy of a runtime: a gang scheduler places the pods of the group all at once or not at all. Pure.
// Source: Kubeflow Trainer v2.3, plugins coscheduling and volcano.
#pragma once

#include "base/json_fields.h"
#include "base/status.h"
#include "controller/plan/draft.h"

namespace muster::controller {

// Adds the PodGroup, named as the TrainJob, and marks its pods as members. Members are pods that begin together: jobs
// other than initializers begin in waves, by their dependencies, and the wave with the most pods is the group.
// `metadata`: {labels, annotations} of the runtime and the patches, with Volcano's queue. `draft->pods` must have each
// job. InvalidArgument: the queue is empty, or a resource of a pod is not a quantity.
Status AddPodGroup(const Json& metadata, Draft* draft);

}  // namespace muster::controller

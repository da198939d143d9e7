// The pods of a job that a scheduler places all at once or not at all: spec.podGroupPolicy of the runtime. Pure.
// Source: Kubeflow Trainer v2.3, plugins coscheduling and volcano.
#pragma once

#include "base/json_fields.h"
#include "base/status.h"
#include "controller/plan/framework.h"

namespace muster::controller {

// Adds the PodGroup, named as the TrainJob, and says in the pods that they belong to it. These are the pods that begin
// together: of the waves in which the jobs begin, initializers apart, the one with the most pods. `metadata`: {labels,
// annotations} of the runtime and the patches; the queue is there. `draft->pods` has each job. InvalidArgument: the
// queue is empty.
Status AddPodGroup(const Json& metadata, Draft* draft);

}  // namespace muster::controller

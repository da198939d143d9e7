// SPDX-License-Identifier: Apache-2.0
// spec.podGroupPolicy of a runtime: a gang scheduler places the pods of the group all at once or not at all. Pure.
// Source: Kubeflow Trainer v2.3, plugins coscheduling and volcano.
#pragma once

#include <cstdint>
#include <vector>

#include "base/json_fields.h"
#include "base/status.h"
#include "controller/plan/draft.h"

namespace muster::controller {

// The jobs whose pods are a group: those that begin together. Jobs other than initializers begin in waves, by their
// dependencies, and the wave with the most pods is the group. `draft->pods` must have each job.
std::vector<ReplicatedJob*> PodsTogether(Draft* draft);

// How many pods of a job of the group must fit before it is placed. An elastic step can begin with minNodes pods.
int64_t MembersOf(const Draft& draft, const ReplicatedJob& of);

// Adds the PodGroup, named as the TrainJob, and marks its pods as members. `metadata`: {labels, annotations} of the
// runtime and the patches, with Volcano's queue. `draft->pods` must have each job. InvalidArgument: the queue is empty,
// or a resource of a pod is not a quantity.
Status AddPodGroup(const Json& metadata, Draft* draft);

}  // namespace muster::controller

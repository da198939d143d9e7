// What a container asks for: the TrainJob's share over the runtime's, and how many workers that is for. Pure.
#pragma once

#include <cstdint>
#include <string>

#include "base/json_fields.h"
#include "base/status.h"
#include "controller/api/runtime.h"
#include "controller/api/train_job.h"

namespace muster::controller {

// ResourceRequirements: requests and limits of `own` go over those of `runtime` key by key, claims by name.
Json MergedResources(Json runtime, const Json& own);

// How many GPUs they are, and slices of GPUs.
int64_t GpusOf(const Json& resources);

// PET_NPROC_PER_NODE of a container with these (merged) resources: a number, or a word that the agent resolves in the
// pod. The first of: spec.trainer.numProcPerNode; kNumProcAnnotation; mlPolicy.torch.numProcPerNode of the runtime;
// "auto" where it asks for GPUs, their slices or claims; the number of other devices; the CPUs, rounded up, at least 1.
StatusOr<std::string> ProcessesPerNode(const TrainJob& job, const Runtime& runtime, const Json& resources);

}  // namespace muster::controller

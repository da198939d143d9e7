// What a TrainJob changes in its runtime: spec.runtimePatches. Pure.
#pragma once

#include <vector>

#include "base/json_fields.h"
#include "base/status.h"
#include "controller/api/runtime.h"
#include "controller/api/train_job.h"

namespace muster::controller {

struct PatchedRuntime {
  std::vector<ReplicatedJob> jobs;  // in the order of the runtime; templates as TidyJobTemplate leaves them
  Json metadata;                    // labels and annotations for every object
};

// The patches go over the runtime in their order, by strategic merge. InvalidArgument names the path in the TrainJob: a
// patch speaks of a job, container, init container or volume that is not there (with the names that are), sets a
// variable that Muster sets, or leaves a template that is none.
StatusOr<PatchedRuntime> ApplyPatches(const TrainJob& job, const Runtime& runtime);

}  // namespace muster::controller

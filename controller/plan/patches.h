// SPDX-License-Identifier: Apache-2.0
// Applies spec.runtimePatches of a TrainJob to its runtime. Pure.
#pragma once

#include <vector>

#include "base/json_fields.h"
#include "base/status.h"
#include "controller/api/runtime.h"
#include "controller/api/train_job.h"

namespace muster::controller {

struct PatchedRuntime {
  std::vector<ReplicatedJob> jobs;  // in the runtime's order; templates have passed TidyJobTemplate
  Json metadata;                    // labels and annotations for every object
};

// Merges the patches into the runtime in their order, by strategic merge. InvalidArgument names the path in the
// TrainJob: a patch names a job, container, init container or volume that does not exist (the message has the names
// that do), sets a variable that Muster sets, or makes a template invalid.
StatusOr<PatchedRuntime> ApplyPatches(const TrainJob& job, const Runtime& runtime);

}  // namespace muster::controller

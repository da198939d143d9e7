// Rules about spec.runtimePatches that need more than the plan. Pure.
#pragma once

#include "controller/admission/review.h"
#include "controller/api/runtime.h"
#include "controller/api/train_job.h"

namespace muster::controller {

// A manager is a path with a domain before it: "kueue.x-k8s.io/manager".
void CheckManagers(const TrainJob& job, Verdict* verdict);

// No variable that the runtime sets in a container `node`, `dataset-initializer` or `model-initializer` of a step of
// the TrainJob: spec.trainer.env and spec.initializer are for those. Names that the runtime does not set are added.
void CheckPatchedVariables(const TrainJob& job, const Runtime& runtime, Verdict* verdict);

// Of an UPDATE that changes the patches, both TrainJobs in the newest shape. Beside the time (validate_train_job.h),
// upstream's immutable fields of a pod: serviceAccountName, volumes, containers ... once they are set. The patch that
// old_shape.h makes is free of that, as v2.1 was.
void CheckPatchChange(const Json& before, const Json& after, Verdict* verdict);

}  // namespace muster::controller

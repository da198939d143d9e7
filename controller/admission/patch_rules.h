// SPDX-License-Identifier: Apache-2.0
// Rules for TrainJobs, most of them for spec.runtimePatches, that the plan does not check. Pure.
#pragma once

#include "controller/admission/review.h"
#include "controller/api/runtime.h"
#include "controller/api/train_job.h"

namespace muster::controller {

// For a new TrainJob, and one whose patches have changed. Refuses (403):
// - a manager that is not a path with a domain before it, such as "kueue.x-k8s.io/manager";
// - a variable that the runtime sets in the container `node`, `dataset-initializer` or `model-initializer` of a step:
//   spec.trainer.env and spec.initializer are for those. A patch may add other variables;
// - an initializer whose container mounts no volume: the data would be lost.
void JudgeNewJob(const TrainJob& job, const Runtime& runtime, Verdict* verdict);
// The rule for managers alone, where the runtime is not known.
void CheckManagers(const TrainJob& job, Verdict* verdict);

// For an UPDATE that changes the patches; both TrainJobs are in the newest shape. Refuses a change of the pod fields
// that upstream makes immutable once they are set (serviceAccountName, volumes, containers ..., 422), then a change
// while the job runs (validate_train_job.h, 403). The patch that old_shape.h makes may change these fields, as in v2.1.
void CheckPatchChange(const Json& before, const Json& after, Verdict* verdict);

}  // namespace muster::controller

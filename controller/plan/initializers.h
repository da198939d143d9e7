// SPDX-License-Identifier: Apache-2.0
// The steps before the training: the fields of their containers, and the order of the jobs. Pure.
#pragma once

#include <vector>

#include "base/status.h"
#include "controller/api/runtime.h"
#include "controller/api/train_job.h"

namespace muster::controller {

inline constexpr char kInitializersAnnotation[] =
    "muster.dev/initializers";  // on the TrainJob or the runtime: "parallel"

// Puts spec.initializer into the containers dataset-initializer and model-initializer: STORAGE_URI, env, and every key
// of the Secret. A container of the image muster-initializer without command and args gets the argument `dataset` or
// `model`. InvalidArgument: the runtime has no such job, or the job no such container.
Status ApplyInitializers(const TrainJob& job, std::vector<ReplicatedJob>* jobs);

// Sets depends_on of every job. An order in the runtime, by dependsOn or startupPolicy InOrder, holds. Else the dataset
// initializer runs first, then the model initializer, then all other jobs. If kInitializersAnnotation is "parallel",
// both initializers run at once. InvalidArgument: the annotation is neither "parallel" nor "sequential".
Status OrderJobs(const TrainJob& job, const Runtime& runtime, std::vector<ReplicatedJob>* jobs);

}  // namespace muster::controller

// The steps before the training: what their containers are told, and which job waits for which. Pure.
#pragma once

#include <vector>

#include "base/status.h"
#include "controller/api/runtime.h"
#include "controller/api/train_job.h"

namespace muster::controller {

inline constexpr char kInitializersAnnotation[] =
    "muster.dev/initializers";  // on the TrainJob or the runtime: "parallel"

// spec.initializer into the containers dataset-initializer and model-initializer: STORAGE_URI, env, and every key of
// the Secret. A container of the image muster-initializer without command and arguments is told which of both it is.
// InvalidArgument: the runtime has no such job, or the job no such container.
Status ApplyInitializers(const TrainJob& job, std::vector<ReplicatedJob>* jobs);

// depends_on of every job. What the runtime says, by dependsOn or startupPolicy InOrder, holds. Else the data set's
// initializer runs first, then the model's, then all others; with kInitializersAnnotation both initializers run at
// once. InvalidArgument: the annotation is another word.
Status OrderJobs(const TrainJob& job, const Runtime& runtime, std::vector<ReplicatedJob>* jobs);

}  // namespace muster::controller

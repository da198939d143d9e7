// SPDX-License-Identifier: Apache-2.0
// Checks whether the webhooks would accept the objects in a user's files. Pure; untrusted input.
#pragma once

#include <vector>

#include "base/status.h"
#include "controller/api/runtime.h"
#include "controller/api/train_job.h"
#include "controller/plan/file_objects.h"

namespace muster::controller {

// InvalidArgument: "file:line: path: what is wrong" for each refusal, a line each. OK if a file is not YAML: the caller
// reads the files afterwards and reports that.
Status ValidatePyTorchJobs(const std::vector<InputFile>& files);

// The same for one PyTorchJob.
Status ValidatePyTorchJob(const FileObject& job);

// The same for a TrainJob that has a plan, and for its runtime, unless that comes with Muster.
Status ValidateTrainJob(const FileObject& job_file, const TrainJob& job, const FileObject& runtime_file,
                        const Runtime& runtime);

}  // namespace muster::controller

// Whether the webhooks would let the PyTorchJobs of a user's files in: what `plan` and `convert` ask first. Pure;
// outside bytes.
#pragma once

#include <vector>

#include "base/status.h"
#include "controller/plan/file_objects.h"

namespace muster::controller {

// InvalidArgument: "file:line: path: what is wrong" for each refusal, a line each. What is no YAML is told by whoever
// reads the files next.
Status ValidatePyTorchJobs(const std::vector<InputFile>& files);

// The same of one PyTorchJob.
Status ValidatePyTorchJob(const FileObject& job);

}  // namespace muster::controller

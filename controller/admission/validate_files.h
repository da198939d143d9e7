// Checks whether the webhooks would accept the PyTorchJobs in a user's files. `plan` and `convert` call this first.
// Pure; untrusted input.
#pragma once

#include <vector>

#include "base/status.h"
#include "controller/plan/file_objects.h"

namespace muster::controller {

// InvalidArgument: "file:line: path: what is wrong" for each refusal, a line each. OK if a file is no YAML: the caller
// reads the files afterwards and reports that.
Status ValidatePyTorchJobs(const std::vector<InputFile>& files);

// The same for one PyTorchJob.
Status ValidatePyTorchJob(const FileObject& job);

}  // namespace muster::controller

// A PyTorchJob (kubeflow.org/v1) as a TrainJob with a TrainingRuntime of its own, both of the PyTorchJob's name. The
// pods of the TrainJob have the same environment, with their own host names. Pure. docs/pytorchjob.md says what becomes
// of each field.
#pragma once

#include <string>
#include <vector>

#include "base/json_fields.h"
#include "base/status.h"

namespace muster::controller {

struct ConvertedJob {
  Json runtime, train_job;
  // What has no counterpart, or another meaning. Each begins with the path in the PyTorchJob.
  std::vector<std::string> remarks;
};

struct ConvertOptions {
  std::string gang_scheduler;  // what the operator was run with: "volcano", another scheduler's name; empty: nothing
};

// InvalidArgument names the path, the value and the remedy: `object` is no PyTorchJob that Muster could run, or no
// TrainJob could run its pods.
StatusOr<ConvertedJob> ConvertPyTorchJob(const Json& object, const ConvertOptions& options);

}  // namespace muster::controller

// SPDX-License-Identifier: Apache-2.0
// Converts a PyTorchJob (kubeflow.org/v1) to a TrainJob with a TrainingRuntime of its own, both named as the
// PyTorchJob. The pods of the TrainJob get the same environment, with the host names of the TrainJob. Pure.
// docs/pytorchjob.md has the conversion of each field.
#pragma once

#include <string>
#include <vector>

#include "base/json_fields.h"
#include "base/status.h"

namespace muster::controller {

struct ConvertedJob {
  Json runtime, train_job;
  // Fields without a counterpart, or with another meaning. Each remark begins with the path in the PyTorchJob.
  std::vector<std::string> remarks;
};

struct ConvertOptions {
  std::string gang_scheduler;  // the operator's --gang-scheduler-name: "volcano" or another; empty: none
};

// InvalidArgument names the path, the value and the remedy: Muster could not run `object` as a PyTorchJob, or no
// TrainJob could run its pods.
StatusOr<ConvertedJob> ConvertPyTorchJob(const Json& object, const ConvertOptions& options);

}  // namespace muster::controller

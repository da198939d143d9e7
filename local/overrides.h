// SPDX-License-Identifier: Apache-2.0
// Changes a job by the command line of `muster local`, before it is planned. Pure; untrusted input.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "base/json_fields.h"
#include "base/status.h"

namespace muster::local {

struct Overrides {
  std::optional<int> nodes;       // TrainJob: spec.trainer.numNodes; PyTorchJob: Master and Workers together
  std::optional<int> processes;   // spec.trainer.numProcPerNode; spec.nprocPerNode
  std::vector<std::string> env;   // "NAME=VALUE", for the trainer's container
  std::vector<std::string> sets;  // "spec.trainer.args=[a, b]": the value is YAML; missing fields are created
};

// `job`: a TrainJob or a PyTorchJob. InvalidArgument: names the flag, the value and the wanted form.
Status Override(const Overrides& overrides, Json* job);

}  // namespace muster::local

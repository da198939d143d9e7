// What the command line of `muster local` changes in a job before it is planned. Pure; outside bytes.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "base/json_fields.h"
#include "base/status.h"

namespace muster::controller {

struct Overrides {
  std::optional<int> nodes;      // TrainJob: spec.trainer.numNodes; PyTorchJob: the Master and so many Workers less one
  std::optional<int> processes;  // spec.trainer.numProcPerNode; spec.nprocPerNode
  std::vector<std::string> env;  // "NAME=VALUE", in the trainer's container
  std::vector<std::string> sets;  // "spec.trainer.args=[a, b]": the value is YAML; what is not there is made
};

// `job`: a TrainJob or a PyTorchJob. InvalidArgument names the flag, the value and what is wanted.
Status Override(const Overrides& overrides, Json* job);

}  // namespace muster::controller

// SPDX-License-Identifier: Apache-2.0
// Converts the pods of a PyTorchJob to one replicated job of a runtime. Pure.
//
// All nodes of a TrainJob share one template: the Master's if there is one, since rank 0 has what the others need, and
// more; else the Worker's.
#pragma once

#include <string>
#include <vector>

#include "base/json_fields.h"
#include "base/status.h"
#include "controller/plan/pytorch_plan.h"

namespace muster::controller {

inline constexpr char kNodeJob[] = "node";  // name of the replicated job

struct ConvertedPods {
  Json pod_template;
  std::string processes;     // PET_NPROC_PER_NODE
  size_t trainer = 0;        // index of the container `node`
  bool own_command = false;  // that container has a command
};

// `plan`: the plan of `job` without the agent. Remarks begin with the path in the PyTorchJob. InvalidArgument: another
// container is named `node`, the name that the trainer's container needs.
StatusOr<ConvertedPods> ConvertPods(const PyTorchJob& job, const PyTorchPlan& plan, std::vector<std::string>* remarks);

// `text` with the PyTorchJob's host names replaced by the TrainJob's: "train-worker-0" becomes
// "train-node-0-1.train".
std::string WithNewHosts(const PyTorchJob& job, const PyTorchPlan& plan, std::string_view text);

}  // namespace muster::controller

// The pods of a PyTorchJob as those of one replicated job of a runtime. Pure.
//
// All nodes of a TrainJob have one template. It is the Master's where there is one: rank 0 has what the others need,
// and more.
#pragma once

#include <string>
#include <vector>

#include "base/json_fields.h"
#include "base/status.h"
#include "controller/plan/pytorch_plan.h"

namespace muster::controller {

inline constexpr char kNodeJob[] = "node";  // the replicated job

struct ConvertedPods {
  Json pod_template;
  std::string processes;     // of a node: PET_NPROC_PER_NODE
  size_t trainer = 0;        // which of the containers is `node`
  bool own_command = false;  // it has one
};

// `plan`: of `job`, without the agent. Remarks begin with the path in the PyTorchJob. InvalidArgument: a container has
// the name that the trainer's needs.
StatusOr<ConvertedPods> ConvertPods(const PyTorchJob& job, const PyTorchPlan& plan, std::vector<std::string>* remarks);

// `text` with the TrainJob's host names in the place of the PyTorchJob's: "train-worker-0" becomes
// "train-node-0-1.train".
std::string WithNewHosts(const PyTorchJob& job, const PyTorchPlan& plan, std::string_view text);

}  // namespace muster::controller

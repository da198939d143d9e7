// torchtune: a job whose command is `tune run` gets the recipe and the config that fit its model, nodes and devices.
// Pure. Source: Kubeflow Trainer v2.3, plugins/torch/torchtune.go.
#pragma once

#include <string>

#include "base/json_fields.h"
#include "base/status.h"
#include "controller/plan/framework.h"

namespace muster::controller {

// Whether spec.trainer.command is `tune run`, which leaves the rest to the runtime.
bool AsksTorchtune(const TrainJob& job);

// Completes the command of `container`. `processes` is PET_NPROC_PER_NODE, `master` the host of node 0.
// InvalidArgument: torchtune has no such model, or no recipe for what is asked.
Status AddRecipe(const Draft& draft, const std::string& processes, const std::string& master, Json* container);

}  // namespace muster::controller

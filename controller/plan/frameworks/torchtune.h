// SPDX-License-Identifier: Apache-2.0
// torchtune: adds the recipe and the config for the job's model, nodes and devices to the command `tune run`. Pure.
// Source: Kubeflow Trainer v2.3, plugins/torch/torchtune.go.
#pragma once

#include <string>

#include "base/json_fields.h"
#include "base/status.h"
#include "controller/plan/draft.h"

namespace muster::controller {

// Whether spec.trainer.command is just `tune run`: then recipe and config are up to AddRecipe().
bool AsksTorchtune(const TrainJob& job);

// Completes the command of `container`. `processes` is PET_NPROC_PER_NODE, `master` the host of node 0.
// InvalidArgument: torchtune has no such model, or no recipe for the model, nodes, devices and arguments.
Status AddRecipe(const Draft& draft, const std::string& processes, const std::string& master, Json* container);

}  // namespace muster::controller

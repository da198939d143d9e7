// SPDX-License-Identifier: Apache-2.0
// What a framework adds to a plan: the number of pods of its jobs, variables and ports of their containers, and further
// objects. Each framework has a file: torch.cc, mpi.cc, jax.cc ... Pure.
//
// AddFramework() needs patched and ordered jobs, with spec.trainer in the containers `node` of the trainer step. The
// agent is added after it.
#pragma once

#include <string_view>

#include "base/json_fields.h"
#include "base/status.h"
#include "controller/plan/draft.h"

namespace muster::controller {

// If the framework is MPI, sets the trainer step and its workers. Call it before spec.trainer goes in.
void SettleSteps(Draft* draft);

// Adds what the runtime's framework needs. InvalidArgument names the path, the value and the remedy.
Status AddFramework(Draft* draft);

// Checks that `env` has no variable that Muster sets for `framework`. Neither spec.trainer.env nor a patch may have
// one. InvalidArgument names `path` and the variables.
Status CheckReservedNames(Framework framework, std::string_view path, const Json& env);

Status AddTorch(Draft* draft);
Status AddMpi(Draft* draft);
Status AddJax(Draft* draft);
Status AddXgboost(Draft* draft);

}  // namespace muster::controller

// SPDX-License-Identifier: Apache-2.0
// The headless Services of a PyTorchJob, one for each replica. Pure.
//
// Services without the job's labels are never touched. If several Services match one replica, none of them is created,
// changed or deleted; the job goes on with the Service of the replica's name, as in training-operator.
#pragma once

#include <string>

#include "controller/api/pytorch_job.h"
#include "controller/plan/pytorch_plan.h"
#include "controller/reconcile/observed.h"
#include "controller/reconcile/steps.h"

namespace muster::controller {

struct ServiceSteps {
  std::vector<Action> actions;
  std::string conflict;  // which Services match the same replica, and the remedy; empty: there is no conflict
};

// Creates missing Services, and deletes those of replicas that are not planned any more.
ServiceSteps SettleServices(const PyTorchJob& job, const PyTorchPlan& plan, const Observed& observed);

// Deletes the job's Service for the pod `name`, if there is one.
void DeleteService(const PyTorchJob& job, const Observed& observed, const std::string& name,
                   std::vector<Action>* actions);

}  // namespace muster::controller

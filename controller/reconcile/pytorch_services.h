// The headless Services of a PyTorchJob, one for each replica. Pure.
//
// Services with other labels are never touched. Where several match one replica, none of them is created, changed or
// deleted; the job goes on with the one of the replica's name, as training-operator does.
#pragma once

#include <string>

#include "controller/api/pytorch_job.h"
#include "controller/plan/pytorch_plan.h"
#include "controller/reconcile/observed.h"
#include "controller/reconcile/steps.h"

namespace muster::controller {

struct ServiceSteps {
  std::vector<Action> actions;
  std::string conflict;  // which Services match one replica, and what to do about it; empty: none do
};

// Those that are missing, and those of replicas that are planned no more.
ServiceSteps SettleServices(const PyTorchJob& job, const PyTorchPlan& plan, const ObservedReplicas& observed);

// Deletes the Service of the job for the pod `name`, where there is one.
void DeleteService(const PyTorchJob& job, const ObservedReplicas& observed, const std::string& name,
                   std::vector<Action>* actions);

}  // namespace muster::controller

// Decides what to do about one PyTorchJob now: (job, plan, observed, now) -> actions, status, events. Pure. Shares
// steps.h, failure.h and plan/agent.h with TrainJobs, but creates pods and Services directly, without Jobs.
// docs/pytorchjob.md explains the rules.
//
// Idempotent: after all actions are carried out and observed, the next decision has none.
#pragma once

#include "controller/api/pytorch_job.h"
#include "controller/plan/pytorch_plan.h"
#include "controller/reconcile/observed.h"
#include "controller/reconcile/steps.h"

namespace muster::controller {

struct PyTorchDecision : Steps {
  PyTorchJobStatus status;
  bool objects_made = false;  // if all actions succeed, all of PyTorchPlan::objects exist as they are planned
};

PyTorchDecision DecidePyTorchJob(const PyTorchJob& job, const PyTorchPlan& plan, const ObservedReplicas& observed,
                                 WallTime now);

// Sets the status of a job that cannot be planned, or whose pods cannot be created. `why` says what is wrong, and the
// remedy. `event`: the reason of the event.
PyTorchDecision DecideWithoutPlan(const PyTorchJob& job, const Status& why, std::string_view event, WallTime now);

}  // namespace muster::controller

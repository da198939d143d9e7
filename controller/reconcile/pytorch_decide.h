// What to do about one PyTorchJob now: (job, plan, observed, now) -> actions, status, events. Pure. The same engine as
// a TrainJob's: steps.h, failure.h, plan/agent.h; pods and Services are made directly. docs/pytorchjob.md has the rules
// for people.
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
  bool objects_made = false;  // once the actions have succeeded, PyTorchPlan::objects are as they are planned
};

PyTorchDecision DecidePyTorchJob(const PyTorchJob& job, const PyTorchPlan& plan, const ObservedReplicas& observed,
                                 WallTime now);

// The status of a job that cannot be planned, or whose pods cannot be made: `why` says what is wrong, with the remedy.
// `event`: the reason of the event.
PyTorchDecision DecideWithoutPlan(const PyTorchJob& job, const Status& why, std::string_view event, WallTime now);

}  // namespace muster::controller

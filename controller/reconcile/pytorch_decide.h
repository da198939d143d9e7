// SPDX-License-Identifier: Apache-2.0
// Decides what to do about one PyTorchJob now: (job, plan, observed, now) -> actions, status, events. Pure. Shares
// steps.h, failure.h and plan/agent.h with TrainJobs, but creates pods and Services directly, without Jobs.
// docs/pytorchjob.md explains the rules.
//
// A job that is being deleted needs nothing. Then come one that has ended, one that cannot be read or planned, one that
// is suspended. All others run by their plan.
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

// False: Decide() does not read the plan of this job, which is being deleted, has ended or is suspended.
bool NeedsPlan(const PyTorchJob& job, const Observed& observed);

// `plan`: valid until the actions are carried out. Its error says why the job cannot be read or planned: it names what
// is missing or wrong, and the remedy. Null if it is not needed.
PyTorchDecision Decide(const PyTorchJob& job, const StatusOr<const PyTorchPlan*>& plan, const Observed& observed,
                       WallTime now);

// Sets the status of a job of which an action has failed: `why` says what is wrong, and the remedy.
PyTorchDecision DecideAfterRefusal(const PyTorchJob& job, const Status& why, WallTime now);

}  // namespace muster::controller

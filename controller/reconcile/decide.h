// Decides what to do about one TrainJob now: (job, plan, observed, now) -> actions, status, events. Pure. This is the
// only place that decides; controller/kube and local carry the decisions out. Each policy has a file.
//
// Idempotent: after all actions are carried out and observed, the next decision has none. Each action may fail or be
// repeated, because a decision uses only what is observed and the status that earlier decisions wrote.
#pragma once

#include "controller/api/train_job.h"
#include "controller/plan/plan.h"
#include "controller/reconcile/observed.h"
#include "controller/reconcile/steps.h"

namespace muster::controller {

struct Decision : Steps {
  TrainJobStatus status;
};

// For a job that has not ended (else: finished.h).
Decision Decide(const TrainJob& job, const Plan& plan, const Observed& observed, WallTime now);

// Sets the status of a job that cannot be planned, or whose objects cannot be made. `why` names what is missing or
// wrong, and the remedy. Its own deadline holds all the same (finished.h).
Decision DecideWithoutPlan(const TrainJob& job, const Status& why, WallTime now);

}  // namespace muster::controller

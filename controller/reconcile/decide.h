// What to do about one TrainJob now: (job, plan, observed, now) -> actions, status, events. Pure, and the only place
// where it is decided; controller/kube and controller/local carry it out. One file for each policy.
//
// Idempotent: after all actions are carried out and observed, the next decision has none. Each action may fail or be
// repeated: a decision goes by what is observed alone, and by the status it wrote itself.
#pragma once

#include "controller/api/train_job.h"
#include "controller/plan/plan.h"
#include "controller/reconcile/observed.h"
#include "controller/reconcile/steps.h"

namespace muster::controller {

struct Decision : Steps {
  TrainJobStatus status;
};

// Of a job that has not ended (else finished.h).
Decision Decide(const TrainJob& job, const Plan& plan, const Observed& observed, WallTime now);

// The status of a job that cannot be planned: `why` names what is missing or wrong, with the remedy.
Decision DecideWithoutPlan(const TrainJob& job, const Status& why, WallTime now);

}  // namespace muster::controller

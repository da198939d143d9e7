// SPDX-License-Identifier: Apache-2.0
// Decides what to do about one TrainJob now: (job, plan, observed, now) -> actions, status, events. Pure. This is the
// only place that decides; controller/kube and local carry the decisions out. Each policy has a file.
//
// A job that is being deleted needs nothing. One that has ended: train_job_finished.h. One whose JobSet of Kubeflow
// Trainer goes on: taken_over.h. Then one that cannot be read or planned. All others run by their plan.
//
// Idempotent: after all actions are carried out and observed, the next decision has none. Each action may fail or be
// repeated, because a decision uses only what is observed and the status that earlier decisions wrote.
#pragma once

#include "controller/api/train_job.h"
#include "controller/plan/plan.h"
#include "controller/reconcile/observed.h"
#include "controller/reconcile/steps.h"

namespace muster::controller {

struct TrainJobDecision : Steps {
  TrainJobStatus status;
  std::optional<TrainingFacts> training;  // how far it is, as its agents tell; nullopt: they tell nothing
  WallTime training_at{};                 // when that was decided
};

// False: Decide() does not read the plan of this job.
bool NeedsPlan(const TrainJob& job, const Observed& observed);

// `plan`: valid until the actions are carried out. Its error says why the job cannot be read or planned: it names what
// is missing or wrong, and the remedy. Null if it is not needed.
TrainJobDecision Decide(const TrainJob& job, const StatusOr<const TrainJobPlan*>& plan, const Observed& observed,
                        WallTime now);

// Sets the status of a job of which an action has failed: `why` says what is wrong, and the remedy.
TrainJobDecision DecideAfterRefusal(const TrainJob& job, const Status& why, WallTime now);

}  // namespace muster::controller

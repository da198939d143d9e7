// SPDX-License-Identifier: Apache-2.0
// A planned Job of the TrainJob `a`, with the fields that reconcile reads, its Service, and a decision
// by a plan.
#pragma once

#include <string>

#include "base/text.h"
#include "controller/plan/plan.h"
#include "controller/reconcile/train_job_decide.h"

namespace muster::controller {

inline PlannedJob Planned(const std::string& rjob, Step step, int pods, bool agent) {
  PlannedJob planned;
  planned.name = fmt::format("a-{}-0", rjob);
  planned.replicated_job = rjob;
  planned.step = step;
  planned.are_nodes = step == Step::kTrainer;
  planned.pods = pods;
  planned.agent = agent;
  planned.restart = agent ? RestartPolicy::kExitCode : RestartPolicy::kOwn;
  planned.common = PackedJson(
      Json{{"metadata", {{"name", planned.name}, {"labels", Json::object()}, {"annotations", Json::object()}}},
           {"spec", {{"template", {{"metadata", Json::object()}, {"spec", {{"containers", Json::array()}}}}}}}});
  return planned;
}

// The headless Service of the job.
inline ObservedService HeadlessService() {
  ObservedService service;
  service.meta.name = "a";
  service.meta.owners = {{"trainer.kubeflow.org/v1alpha1", "TrainJob", "a", "uid-a", true}};
  return service;
}

inline TrainJobDecision Decide(const TrainJob& job, const TrainJobPlan& plan, const Observed& observed, WallTime now) {
  return Decide(job, &plan, observed, now);
}

}  // namespace muster::controller

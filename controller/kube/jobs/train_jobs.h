// SPDX-License-Identifier: Apache-2.0
// The controller of TrainJobs (job_controller.h). Decides by reconcile/train_job_decide.h. Loop thread only.
#pragma once

#include <memory>
#include <string>

#include "controller/kube/jobs/passes.h"
#include "controller/kube/jobs/runtime_cache.h"
#include "controller/plan/plan.h"

namespace muster::controller {

class TrainJobs {
 public:
  struct Options {
    PlanOptions plan;
    std::string ns;  // empty: all namespaces
    WorkQueue::Options queue;
  };
  TrainJobs(const ControllerContext& context, RuntimeCache& runtimes, Options options);
  ~TrainJobs();
  TrainJobs(const TrainJobs&) = delete;
  TrainJobs& operator=(const TrainJobs&) = delete;

  void Begin();
  void PlanWith(PlanOptions options);  // from now on jobs are planned with these options
  bool synced() const;                 // everything is listed; no pass begins before that
  JobCounts counts() const;

 private:
  class Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace muster::controller

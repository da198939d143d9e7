// SPDX-License-Identifier: Apache-2.0
// The controller of PyTorchJobs (job_controller.h). Decides by reconcile/pytorch_decide.h. Loop thread only.
#pragma once

#include <memory>
#include <string>

#include "controller/kube/jobs/passes.h"
#include "controller/plan/pytorch_plan.h"

namespace muster::controller {

class PyTorchJobs {
 public:
  struct Options {
    PyTorchOptions plan;
    std::string ns;  // empty: all namespaces
    WorkQueue::Options queue;
  };

  PyTorchJobs(const ControllerContext& context, Options options);
  ~PyTorchJobs();
  PyTorchJobs(const PyTorchJobs&) = delete;
  PyTorchJobs& operator=(const PyTorchJobs&) = delete;

  void Begin();
  bool synced() const;  // everything is listed; no pass begins before that
  JobCounts counts() const;

 private:
  class Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace muster::controller

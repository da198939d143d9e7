// The controller of PyTorchJobs. Watches them and what belongs to them, decides by reconcile/pytorch_decide.h and
// carries the decisions out. A job has one pass at a time. Loop thread only. A job that has ended costs no calls.
#pragma once

#include <map>
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

  PyTorchJobs(ServingMeans means, Options options);
  ~PyTorchJobs();
  PyTorchJobs(const PyTorchJobs&) = delete;
  PyTorchJobs& operator=(const PyTorchJobs&) = delete;

  void Begin();
  bool synced() const;  // everything is listed; no pass begins before that

  struct Counts {
    Passes::Counts passes;
    std::map<std::string, int> jobs_by_state;  // by the last condition
  };
  Counts counts() const;

 private:
  class Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace muster::controller

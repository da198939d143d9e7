// PyTorchJobs kept as they ask to be: what belongs to them is watched, reconcile/pytorch_decide.h decides, and its
// actions are carried out, one pass a job at a time. Loop thread only. A job that has ended costs no call.
#pragma once

#include <map>
#include <memory>
#include <string>

#include "controller/kube/passes.h"
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
  bool synced() const;  // all is listed; no pass begins before

  struct Counts {
    Passes::Counts passes;
    std::map<std::string, int> jobs_by_state;  // the last condition
  };
  Counts counts() const;

 private:
  class Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace muster::controller

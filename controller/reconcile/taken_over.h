// A TrainJob that Kubeflow Trainer has started. Its JobSet goes on under JobSet's own controller, and Muster copies the
// JobSet's status to the TrainJob. Muster creates no objects for it. Pure; untrusted input. Source: Kubeflow Trainer
// v2.3, plugins/jobset.
#pragma once

#include <string>
#include <vector>

#include "controller/reconcile/decide.h"

namespace muster::controller {

// jobset.x-k8s.io/v1alpha2 JobSet.
struct ObservedJobSet {
  struct End {
    std::string reason, message;
  };

  Meta meta;
  bool suspended = false;
  std::optional<End> completed, failed;  // the conditions of these names, if they are true
  std::vector<JobsStatus> jobs;          // in the order of the spec
  int restarts = 0;
};

StatusOr<ObservedJobSet> ReadJobSet(const Json& object);

// Whether `job_set` is the one that Kubeflow Trainer made for `job`.
bool IsOf(const ObservedJobSet& job_set, const TrainJob& job);

// For a job that has not ended. Suspends and resumes it, and ends it at its deadline, as Kubeflow Trainer does.
Decision DecideTakenOver(const TrainJob& job, const ObservedJobSet& job_set, WallTime now);

}  // namespace muster::controller

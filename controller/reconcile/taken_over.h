// SPDX-License-Identifier: Apache-2.0
// A TrainJob that Kubeflow Trainer has started. Its JobSet goes on under JobSet's own controller, and Muster copies the
// JobSet's status to the TrainJob. Muster creates no objects for it. Pure; untrusted input. Source: Kubeflow Trainer
// v2.3, plugins/jobset.
#pragma once

#include <string>
#include <vector>

#include "controller/reconcile/train_job_decide.h"

namespace muster::controller {

// jobset.x-k8s.io/v1alpha2 JobSet.
StatusOr<ObservedJobSet> ReadJobSet(const Json& object);

// Whether `job_set` is the one that Kubeflow Trainer made for `job`.
bool IsOf(const ObservedJobSet& job_set, const TrainJob& job);

// For a job that has not ended. Suspends and resumes it, and ends it at its deadline, as Kubeflow Trainer does.
TrainJobDecision DecideTakenOver(const TrainJob& job, const ObservedJobSet& job_set, WallTime now);

}  // namespace muster::controller

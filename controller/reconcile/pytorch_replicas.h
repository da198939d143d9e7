// SPDX-License-Identifier: Apache-2.0
// The replicas of a PyTorchJob: the pod of each planned replica, how the pod failed, what that costs, and when it is
// replaced. Pure.
//
// Pod names are used again, so a pod's end is known by the pod's uid. status.countedPods says what each existing pod
// has cost. So nothing is counted twice, even if the controller is killed at any moment.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <vector>

#include "controller/api/pytorch_job.h"
#include "controller/plan/pytorch_plan.h"
#include "controller/reconcile/failure.h"
#include "controller/reconcile/observed.h"

namespace muster::controller {

struct Replica {
  const PlannedReplicas* planned = nullptr;
  int index = 0;
  std::string name;                   // of its pod and its Service
  const ObservedPod* pod = nullptr;   // null: there is none
  bool old = false;                   // the pod is of an earlier attempt of the whole job, or from before a suspension
  std::optional<PodFailure> failure;  // only of a pod that is not old
  bool consequence = false;           // its exit code would be fatal, but a peer had failed before it
  bool succeeded = false;             // its pod has, or one had
  bool recorded = false;              // by itself, not because it was told to end: it does not run again
  bool idle = false;                  // the job has succeeded without it: run_success.h

  bool Runs() const {
    return pod != nullptr && !old && !succeeded && !failure && pod->phase == "Running" && !pod->meta.deleted;
  }
  bool HasFailed() const { return failure.has_value(); }
  bool HasFailedForGood() const { return failure && failure->fatal; }
  bool Succeeded() const { return succeeded; }
  bool IsDone() const { return succeeded || idle; }
};

struct Replicas {
  std::vector<Replica> all;                 // in the order of the plan
  std::vector<const ObservedPod*> extra;    // pods of the job, but of no planned replica: to delete
  std::vector<const ObservedPod*> orphans;  // pods of planned replicas, without a controller

  int Count(ReplicaType type, bool (Replica::*is)() const) const;
  // How many replicas of each type are named by the failures of those that `is` selects: a pod that ended for the
  // failure of another one does not count.
  std::map<ReplicaType, int> CountCauses(bool (Replica::*is)() const) const;
};

// Whether the job has: its Masters, else its Workers, of which one is enough for an elastic job.
bool HaveSucceeded(const PyTorchPlan& plan, const Replicas& replicas);

// Finds the pod of each planned replica, and judges its failure by those in the status (see `consequence`).
Replicas PlaceReplicas(const PyTorchJob& job, const PyTorchPlan& plan, const Observed& observed, WallTime now);

// A pod that ran when a peer failed with a retryable code, and ended within this time, may be a consequence: collective
// operations of PyTorch give up after 10 minutes. So may further ones, within this time after the first failure.
inline constexpr std::chrono::minutes kPeerFailureShows{10};

// The restarts that had been used when the oldest of the pods was created. There is none: the budget.
int RestartsBefore(const PyTorchPlan& plan, const Replicas& replicas);

struct Charged {
  std::vector<Failure> failed;    // new failures that ended pods
  std::vector<Failure> overcome;  // and those that a restart in the pods has overcome
};
// Adds new restarts and failures to the status. `agents`: what they say while they run.
Charged Charge(const PyTorchPlan& plan, const Replicas& replicas, const std::optional<AgentsSaid>& agents,
               PyTorchJobStatus* status);

// When a failed pod is replaced: at once the first time, and after a life of a minute; else after a pause that doubles
// with each failure of its name in the last 15 minutes, as far as the status has them. A pod that never ran waits too.
WallTime MadeAnewAt(const Replica& replica, const PyTorchJobStatus& status, WallTime now);

// Forgets which replicas have succeeded: all of them run again.
void ForgetSuccesses(PyTorchJobStatus* status);

// Sets status.replicaStatuses. A pod that runs and is being deleted counts as failed, as in training-operator.
void CountReplicas(const PyTorchJob& job, const PyTorchPlan& plan, const Replicas& replicas, PyTorchJobStatus* status);

// True if all planned replicas ran or had succeeded, by the counts of `status`.
bool WasWhole(const PyTorchPlan& plan, const PyTorchJobStatus& status);

}  // namespace muster::controller

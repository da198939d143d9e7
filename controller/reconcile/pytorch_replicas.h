// The replicas of a PyTorchJob: which pod each planned one has, how it failed, what that costs, and when it is made
// anew. Pure.
//
// A pod's name is used again, so its end is known by its uid. What it has cost stands in status.countedPods as long as
// the pod is there, so that nothing is counted twice, whenever the controller ends.
#pragma once

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
  std::string name;                  // of its pod and its Service
  const ObservedPod* pod = nullptr;  // null: there is none
  bool old = false;                  // the pod is of an earlier attempt of the whole job, or of before it was suspended
  std::optional<PodFailure> failure;  // of a pod that is not old
  bool consequence = false;           // its code would be fatal, but a peer had failed before it

  bool Runs() const { return pod != nullptr && !old && pod->phase == "Running" && !pod->meta.deleted; }
  bool HasFailed() const { return failure.has_value(); }
  bool HasFailedForGood() const { return failure && failure->fatal; }
  bool Succeeded() const { return pod != nullptr && !old && pod->phase == "Succeeded"; }
};

struct Replicas {
  std::vector<Replica> all;                 // in the order of the plan
  std::vector<const ObservedPod*> extra;    // of the job, and of no planned replica: they go
  std::vector<const ObservedPod*> orphans;  // planned, and controlled by nobody

  int Count(ReplicaType type, bool (Replica::*is)() const) const;
};

// Failures are read, and judged against those in the status: see `consequence`.
Replicas PlaceReplicas(const PyTorchJob& job, const PyTorchPlan& plan, const ObservedReplicas& observed);

// A pod that was under way when a peer failed with a retryable code, and ended so much later at most, may have ended
// for that reason: collective operations of PyTorch give up after 10 minutes. So may one that such a pod was a peer of,
// within the same minutes after the first failure.
inline constexpr std::chrono::minutes kPeerFailureShows{10};

// Charges restarts and notes failures in the status; gives those that are new.
std::vector<Failure> Charge(const PyTorchPlan& plan, const Replicas& replicas, PyTorchJobStatus* status);

// When the pod that failed is made anew: at once the first time, and after a life of a minute; else after a pause that
// doubles with each failure of it in the last quarter of an hour, as far as the status remembers them.
WallTime MadeAnewAt(const Replica& replica, const PyTorchJobStatus& status, WallTime now);

// status.replicaStatuses. A pod that runs and is being deleted counts as failed, as training-operator counts it.
void CountReplicas(const PyTorchJob& job, const PyTorchPlan& plan, const Replicas& replicas, PyTorchJobStatus* status);

// By the counts of `status`, all planned replicas ran or had succeeded.
bool WasWhole(const PyTorchPlan& plan, const PyTorchJobStatus& status);

}  // namespace muster::controller

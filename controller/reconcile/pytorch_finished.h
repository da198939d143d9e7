// The end of a PyTorchJob, and its suspension: which pods and Services go, and when the job goes. Pure.
#pragma once

#include "controller/reconcile/pytorch_decide.h"

namespace muster::controller {

// cleanPodPolicy, the PodGroup, ttlSecondsAfterFinished. Where a limit has ended the job, pods that run go whatever the
// policy, as under training-operator; those that have ended stay, with their logs. The status of a job that has ended
// says why already: nothing that goes is needed to know it.
void CleanUp(const PyTorchJob& job, const ObservedReplicas& observed, WallTime now, PyTorchDecision* decision);

// All pods and Services of the job, its PodGroup and its autoscaler: a suspended job has none.
void DeleteAll(const PyTorchJob& job, const ObservedReplicas& observed, PyTorchDecision* decision);

}  // namespace muster::controller

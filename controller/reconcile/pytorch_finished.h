// The end and the suspension of a PyTorchJob: which pods and Services are deleted, and when the job is. Pure.
#pragma once

#include "controller/reconcile/pytorch_decide.h"

namespace muster::controller {

// Applies cleanPodPolicy, deletes the PodGroup, and applies ttlSecondsAfterFinished. After an end by a limit, None is
// Running, as in training-operator: pods that have ended stay, with their logs. The status must say already why the job
// ended, as deleted pods cannot be read.
void CleanUp(const PyTorchJob& job, const Observed& observed, WallTime now, PyTorchDecision* decision);

// Deletes what a suspended job does not have: pods, Services, PodGroup and autoscaler.
void DeleteAll(const PyTorchJob& job, const Observed& observed, PyTorchDecision* decision);

}  // namespace muster::controller

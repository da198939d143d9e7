// SPDX-License-Identifier: Apache-2.0
// The end and the suspension of a PyTorchJob: which pods and Services are deleted, and when the job is. Pure.
#pragma once

#include "controller/reconcile/pytorch_decide.h"
#include "controller/reconcile/pytorch_replicas.h"

namespace muster::controller {

// Applies cleanPodPolicy, deletes the PodGroup, and applies ttlSecondsAfterFinished. After an end by a limit, None is
// Running, as in training-operator: pods that have ended stay, with their logs. The status must say already why the job
// ended, as deleted pods cannot be read.
void CleanUp(const PyTorchJob& job, const Observed& observed, WallTime now, PyTorchDecision* decision);

// Deletes the idle replicas of a job that has succeeded, also if cleanPodPolicy is None: they would wait for peers that
// have ended. Then they go before the status is written, since no later pass knows that they are idle.
void RemoveIdle(const PyTorchJob& job, const Replicas& replicas, PyTorchDecision* decision);

// Deletes what a suspended job does not have: pods, Services, PodGroup and autoscaler.
void DeleteAll(const PyTorchJob& job, const Observed& observed, PyTorchDecision* decision);

}  // namespace muster::controller

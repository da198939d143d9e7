// SPDX-License-Identifier: Apache-2.0
// The container that decides how its pod ends: `node`, `pytorch`, or an initializer's. The others serve it. Pure.
//
// Kubernetes ends a pod when all its containers have ended. A container that serves the training (a proxy, an exporter)
// often never ends, so the pod and its Job would never end either.
#pragma once

#include <optional>

#include "controller/reconcile/observed.h"
#include "controller/reconcile/steps.h"

namespace muster::controller {

// How long after the end of a job the deletion of its gang is repeated: the pass that ended it may have failed. Later,
// an ended job costs no calls.
inline constexpr std::chrono::seconds kGangGoes{60};

// How long the others may take to end by themselves after the deciding container has succeeded.
inline constexpr std::chrono::seconds kServingEnds{30};

// The end of the deciding container, after which the kubelet does not start it again. Null: it has not ended so, or the
// pod has no other container.
const ObservedEnd* DecidingEnd(const ObservedPod& pod);

// The deciding container has ended, and others run.
bool IsOutlasted(const ObservedPod& pod);

// The pod has succeeded, or its deciding container has, and the others have failed or run for longer than kServingEnds.
bool HasSucceeded(const ObservedPod& pod, WallTime now);

// Until when the others may run, if IsOutlasted() after a success. nullopt: else.
std::optional<WallTime> ServingEndsAt(const ObservedPod& pod);

// A pod whose Job is gone keeps the Job controller's finalizer, and so stays for ever, if that controller has not seen
// the deletion of the Job: another one had its name by then. It looks again at a pod that changes, so such pods get
// kEndedAnnotation this long after their deletion. Source: job_controller.go, deletePod and syncOrphanPod.
inline constexpr std::chrono::seconds kOrphanedFor{60};
void TouchOrphans(const Observed& observed, WallTime now, Steps* steps);

// Ends what still runs or would start again in the pod after the end of `container`, but keeps the pod with its logs:
// its deadline is set. Once for each pod.
void EndPod(const ObservedPod& pod, const std::string& container, Steps* steps);

}  // namespace muster::controller

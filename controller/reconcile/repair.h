// SPDX-License-Identifier: Apache-2.0
// The objects of a plan beside its Services, Jobs and pods: how one is created, and which of them were deleted or
// edited while the job runs. Pure.
//
// ConfigMaps and HorizontalPodAutoscalers are followed (ObservedObject). A Secret is not: the controller cannot read
// any. It learns from the kubelet that one is gone (MakeSecretAgain). Only what a plan sets is compared and put back,
// so what other writers add to an object stays.
#pragma once

#include "controller/reconcile/observed.h"
#include "controller/reconcile/steps.h"

namespace muster::controller {

inline constexpr char kConfigMapKind[] = "ConfigMap", kAutoscalerKind[] = "HorizontalPodAutoscaler";

// Creates `planned`, which must outlive the action.
Action CreationOf(const PlannedObject& planned);

// Creates the headless Service of a TrainJob that is missing. Deletes one whose selector was edited: it is created
// again when it is gone. `planned`: null: the job has none.
void SettleService(const Json& planned, const Meta& job, const std::vector<ObservedService>& services, Steps* steps);

// True if `found` has all that `planned` says. Lists have equal items in the same order; quantities are compared as
// such; the owners are not compared.
bool Holds(const Json& found, const Json& planned);

// True if the followed object is not `there`, belongs to another owner than `job`, or does not hold what is planned and
// may be updated. False: it is right, or of a kind that is not followed. `there`: null: nothing is followed.
bool IsWrong(const PlannedObject& planned, const Meta& job, const std::vector<ObservedObject>* there);

// Whether `planned` is a Secret, and a pod has started with it. So it exists, or MakeSecretAgain() will hear of it.
bool IsMounted(const PlannedObject& planned, const std::vector<ObservedPod>& pods);

// Creates a Secret of the job again if one of `pods` cannot start without it: the kubelet says so in an Event. The new
// Secret has the content of the deleted one (derived_secrets.h), so the other pods go on.
void MakeSecretAgain(const PlannedObject& planned, const std::vector<ObservedPod>& pods, Steps* steps);

StatusOr<ObservedObject> ReadObject(const Json& object);  // a followed one

}  // namespace muster::controller

// The objects of a plan beside its Services, Jobs and pods: how one is created, and which of them were deleted or
// edited while the job runs. Pure.
//
// ConfigMaps and HorizontalPodAutoscalers are followed (ObservedObject). A Secret is not: the controller cannot read
// any. Only what a plan sets is compared and put back, so what other writers add to an object stays.
#pragma once

#include "controller/reconcile/observed.h"
#include "controller/reconcile/steps.h"

namespace muster::controller {

inline constexpr char kConfigMapKind[] = "ConfigMap", kAutoscalerKind[] = "HorizontalPodAutoscaler";

// Creates `planned`, which must outlive the action.
Action CreationOf(const PlannedObject& planned);

// True if `found` has all that `planned` says. Lists have equal items in the same order; quantities are compared as
// such; the owners are not compared.
bool Holds(const Json& found, const Json& planned);

// True if the followed object is not `there`, belongs to another owner than `job`, or does not hold what is planned.
// False: it is right, or of a kind that is not followed. `there`: null: nothing is followed.
bool IsWrong(const PlannedObject& planned, const Meta& job, const std::vector<ObservedObject>* there);

StatusOr<ObservedObject> ReadObject(const Json& object);  // a followed one

}  // namespace muster::controller

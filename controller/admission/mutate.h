// What the API server stores of a TrainJob instead of what was given. Pure; outside bytes.
#pragma once

#include "base/clock.h"
#include "controller/admission/review.h"

namespace muster::controller {

// Whether the runtime decides about anything here: it may be elastic, and the number of nodes is not given.
bool MutationNeedsRuntime(const AdmissionRequest& request);

// Of a CREATE or UPDATE of a TrainJob, a patch that
//
//   puts the fields of the old patch back where all of them have gone, and the patch of manager muster.dev/v21 is as
//   it was, or has never been: a client of v2.2 or later drops what it does not know. The warning says how to be rid
//   of them. A client of v2.1 that takes them away drops that patch, too, so they go;
//   turns the old shape into the newest one (api/old_shape.h), with its warnings;
//   sets spec.trainer.numNodes of an elastic job where it is not given, since /scale needs the field: the number that
//   the plan takes; of an UPDATE, the number that the job has;
//   stamps runtimePatches[].time: of a patch that is new, where it has none; of one that has changed, always; one that
//   has not changed keeps the time that it had.
//
// The patch of the patched object is empty, so that the API server may ask again. `runtime`: null: there is none, or
// MutationNeedsRuntime says no. Refuses (422) what is no TrainJob of either shape.
Verdict MutateTrainJob(const AdmissionRequest& request, const Json* runtime, WallTime now);

}  // namespace muster::controller

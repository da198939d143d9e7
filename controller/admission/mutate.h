// SPDX-License-Identifier: Apache-2.0
// The mutating webhook of TrainJobs. Pure; untrusted input.
#pragma once

#include "base/clock.h"
#include "controller/admission/review.h"

namespace muster::controller {

// Whether MutateTrainJob needs the runtime: the request gives no number of nodes, so an elastic runtime decides it.
bool MutationNeedsRuntime(const AdmissionRequest& request);

// For a CREATE or UPDATE of a TrainJob, makes a patch that
// - restores the old fields (kOldPatchFields) if an UPDATE has removed all of them, and the patch of manager
//   muster.dev/v21 is unchanged or in neither object: a client of v2.2 or later drops fields that it does not know. A
//   warning says how to remove the fields. A client of v2.1 that removes them drops the patch too: nothing is restored;
// - converts the old shape to the newest one (api/old_shape.h), with its warnings;
// - sets spec.trainer.numNodes of an elastic job if it is absent, since /scale needs the field: to the number that the
//   plan uses, or in an UPDATE to the number that the job has;
// - stamps runtimePatches[].time: of a new patch, if it has none; of a changed patch, unless its time is new and
// younger
//   than 30 s, and so from an earlier review of this request. An unchanged patch keeps its time.
//
// A second call for the patched object gives an empty patch, since the API server may ask twice. `runtime` is null if
// it does not exist or MutationNeedsRuntime is false. Refuses (422) an object that is not a TrainJob of either shape.
Verdict MutateTrainJob(const AdmissionRequest& request, const Json* runtime, WallTime now);

}  // namespace muster::controller

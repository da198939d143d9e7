// Whether a TrainJob may be stored as it is given. Pure; outside bytes.
//
// CREATE, in this order: its form (422); managers of patches; its runtime, which must be there; what the plan says; and
// what upstream asks of initializers and patches beyond that. A job of another manager is judged by its form alone.
//
// UPDATE: nothing where the spec means the same as before, or the job is being deleted. Else (422) spec.runtimeRef,
// initializer, trainer, managedBy and activeDeadlineSeconds are immutable, by meaning. spec.trainer.numNodes may change
// while the job is suspended before or after, and of an elastic job at any time; a job that waits in a queue of Kueue
// must be suspended after. runtimePatches may change while the job is suspended before or after and none of its Jobs is
// active (403). Then, if the trainer or the patches have changed, as CREATE, by the snapshot of the runtime where there
// is one. So suspending and resuming always succeed. A job whose runtime has gone is not refused for that. Of a job
// that has ended, only what is immutable counts.
#pragma once

#include "controller/admission/review.h"
#include "controller/plan/plan.h"

namespace muster::controller {

struct TrainJobFacts {
  const Json* runtime = nullptr;   // of spec.runtimeRef, as it is now; null: there is none
  const Json* snapshot = nullptr;  // the ConfigMap (plan.h); null: there is none
};

// Whether the facts change the verdict. Of a CREATE there is no snapshot.
bool ValidationNeedsFacts(const AdmissionRequest& request);

Verdict ValidateTrainJob(const AdmissionRequest& request, const TrainJobFacts& facts, const PlanOptions& options);

// A request about /scale (autoscaling/v1 Scale) as the UPDATE of the TrainJob that it comes to. `job`: as it is now.
AdmissionRequest UpdateByScale(const AdmissionRequest& request, const Json& job);

}  // namespace muster::controller

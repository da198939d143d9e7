// SPDX-License-Identifier: Apache-2.0
// The validating webhook of TrainJobs. Pure; untrusted input.
//
// CREATE checks, in this order: the form (422); that the runtime exists; the runtime's form; JudgeNewJob()
// (patch_rules.h); the plan. For a job of another manager only the form is checked.
//
// UPDATE checks nothing if the spec means the same as before, or the job is being deleted. Else:
// - spec.runtimeRef, initializer, trainer, managedBy and activeDeadlineSeconds are immutable, by meaning (422).
// - spec.trainer.numNodes may change if the job is suspended before or after the update, and of an elastic job at any
//   time. A job in a queue of Kueue must be suspended after the update.
// - runtimePatches may change if the job is suspended before or after the update and none of its Jobs is active (403).
// - If the trainer, numNodes or the patches have changed, the form and the plan are checked as in CREATE; JudgeNewJob()
//   only if the patches have. The runtime is the snapshot's, else the current one, if any.
// So suspending and resuming always succeed. For a job that has ended, only the first two points apply.
#pragma once

#include "controller/admission/review.h"
#include "controller/plan/plan.h"

namespace muster::controller {

struct TrainJobFacts {
  // False: the one who asks may not learn of the runtime and the snapshot. Then nothing is refused for their sake.
  bool known = true;
  const Json* runtime = nullptr;   // the one in spec.runtimeRef, as it is now; null: it does not exist
  const Json* snapshot = nullptr;  // the ConfigMap (plan.h); null: it does not exist
};

// Whether ValidateTrainJob needs the facts. A CREATE has no snapshot.
bool ValidationNeedsFacts(const AdmissionRequest& request);

Verdict ValidateTrainJob(const AdmissionRequest& request, const TrainJobFacts& facts, const PlanOptions& options);

// Converts a request for /scale (autoscaling/v1 Scale) to an UPDATE of the TrainJob. `job`: the TrainJob as it is now.
AdmissionRequest UpdateByScale(const AdmissionRequest& request, const Json& job);

}  // namespace muster::controller

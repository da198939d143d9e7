// SPDX-License-Identifier: Apache-2.0
// The validating webhook of PyTorchJobs (kubeflow.org/v1). Pure; untrusted input.
//
// CREATE checks the rules of training-operator's webhook (403; its messages, with the remedy added), then the form by
// ReadPyTorchJob (422), then, unless the job has another manager, whether Muster can plan it (403).
//
// UPDATE checks nothing if the job is being deleted. Else runPolicy.managedBy is immutable (403); absent means
// kubeflow.org/training-operator. Then the checks of CREATE, unless the spec without runPolicy.suspend means the same
// as before, or the job has another manager. So suspending and resuming always succeed.
//
// Source: training-operator v1.9, pkg/webhooks/pytorch/pytorchjob_webhook.go, pkg/common/util/webhooks.go.
#pragma once

#include "controller/admission/review.h"
#include "controller/plan/pytorch_plan.h"

namespace muster::controller {

Verdict ValidatePyTorchJob(const AdmissionRequest& request, const PyTorchOptions& options);

// Converts a request for /scale (autoscaling/v1 Scale) to an UPDATE of the PyTorchJob. `job`: the job as it is now.
AdmissionRequest PyTorchUpdateByScale(const AdmissionRequest& request, const Json& job);

}  // namespace muster::controller

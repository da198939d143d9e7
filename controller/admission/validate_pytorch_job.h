// Whether a PyTorchJob (kubeflow.org/v1) may be stored as it is given. Pure; outside bytes.
//
// CREATE: the rules and messages of training-operator's webhook (403), with what to do; then its form, which is what
// ReadPyTorchJob says (422); then what Muster cannot make (403). A job of another manager is spared the last.
//
// UPDATE: nothing where the job is being deleted. Else runPolicy.managedBy is immutable (403), by meaning: absent is
// kubeflow.org/training-operator. Then as CREATE, unless the spec means the same as before, runPolicy.suspend aside,
// or the job is another manager's. So suspending and resuming always succeed.
//
// Source: training-operator v1.9, pkg/webhooks/pytorch/pytorchjob_webhook.go, pkg/common/util/webhooks.go.
#pragma once

#include "controller/admission/review.h"
#include "controller/plan/pytorch_plan.h"

namespace muster::controller {

Verdict ValidatePyTorchJob(const AdmissionRequest& request, const PyTorchOptions& options);

// A request about /scale (autoscaling/v1 Scale) as the UPDATE of the PyTorchJob that it comes to. `job`: as it is now.
AdmissionRequest PyTorchUpdateByScale(const AdmissionRequest& request, const Json& job);

}  // namespace muster::controller

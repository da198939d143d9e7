// SPDX-License-Identifier: Apache-2.0
// The validating webhooks of TrainingRuntimes and ClusterTrainingRuntimes. Pure; untrusted input.
#pragma once

#include <string>

#include "controller/admission/review.h"
#include "controller/plan/plan.h"

namespace muster::controller {

// On a runtime, "true": it cannot be deleted while a TrainJob that has not ended uses it. This is a label because the
// webhook's objectSelector needs one: other runtimes are deleted without a call of the webhook.
inline constexpr char kProtectedLabel[] = "muster.dev/protected";

// CREATE, and UPDATE that changes the meaning of the spec. Checks, all with 403: ReadRuntime; upstream's rules for the
// steps of a TrainJob; JobSet's rules for the coordinator and the number of pods. Warns if a new runtime is deprecated,
// or if a TrainJob without fields of its own could not be planned. Other operations are allowed.
Verdict ValidateRuntime(const AdmissionRequest& request, const PlanOptions& options);

// The rules of ValidateRuntime for a runtime that ReadRuntime has read.
void JudgeRuntime(const Runtime& runtime, Verdict* verdict);
// False: the runtime has the label trainer.kubeflow.org/webhook-validation: disabled, so the webhooks never see it.
bool IsValidated(const Json& runtime);

// Whether `request` is a DELETE that must be refused while UsesRuntime() is true for a TrainJob.
bool IsProtected(const AdmissionRequest& request);
bool UsesRuntime(const Json& train_job, const AdmissionRequest& request);
// `job`: the key (KeyOf) of a TrainJob that uses the runtime; empty: it is not said.
Verdict RefuseDelete(const AdmissionRequest& request, std::string_view job);

}  // namespace muster::controller

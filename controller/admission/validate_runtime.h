// Whether a TrainingRuntime or ClusterTrainingRuntime may be stored as it is given, or deleted. Pure; outside bytes.
#pragma once

#include <string>

#include "controller/admission/review.h"
#include "controller/plan/plan.h"

namespace muster::controller {

// On a runtime, "true": it cannot be deleted while a TrainJob that has not ended uses it. A label, so that the
// webhook's objectSelector spares all others the question.
inline constexpr char kProtectedLabel[] = "muster.dev/protected";

// CREATE, and UPDATE where the spec means something else than before, all 403: what ReadRuntime says; upstream's rules
// of the steps of a TrainJob; what JobSet asks of a coordinator and of the number of pods. Warns of a runtime that is
// deprecated, and of one of which no TrainJob could be planned. Other operations: nothing.
Verdict ValidateRuntime(const AdmissionRequest& request, const PlanOptions& options);

// Whether a DELETE has to be refused while a TrainJob for which UsesRuntime is true exists.
bool IsProtected(const AdmissionRequest& request);
bool UsesRuntime(const Json& train_job, const AdmissionRequest& request);
// `job`: KeyOf one of them.
Verdict RefuseDelete(const AdmissionRequest& request, std::string_view job);

}  // namespace muster::controller

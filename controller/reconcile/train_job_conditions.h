// SPDX-License-Identifier: Apache-2.0
// Conditions of a TrainJob, with the types, reasons and messages of Kubeflow Trainer and JobSet: clients compare them.
// Pure. Source: trainer_types.go, jobset constants.go.
#pragma once

#include <string>
#include <string_view>

#include "controller/api/train_job.h"

namespace muster::controller {

inline constexpr char kSuspended[] = "Suspended";
inline constexpr char kComplete[] = "Complete";
inline constexpr char kFailed[] = "Failed";

// lastTransitionTime becomes `now` only if the value of the condition changes.
void SetCondition(TrainJobStatus* status, std::string_view type, bool value, std::string_view reason,
                  std::string message, int64_t generation, WallTime now);

// Sets Suspended by spec.suspend: True while that is set; False only if the condition was True before.
void SetSuspended(const TrainJob& job, TrainJobStatus* status, WallTime now);

// Set Complete, or Failed with `reason`. `upstream` is the message that Kubeflow Trainer writes; `cause` is appended.
void SetComplete(const TrainJob& job, TrainJobStatus* status, WallTime now);
void SetFailed(const TrainJob& job, TrainJobStatus* status, std::string_view reason, std::string_view upstream,
               std::string_view cause, WallTime now);

}  // namespace muster::controller

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

// lastTransitionTime is `now` where the status of the condition changes, else it stays.
void SetCondition(TrainJobStatus* status, std::string_view type, bool value, std::string_view reason,
                  std::string message, int64_t generation, WallTime now);

// Suspended by spec.suspend: True while it holds; False only where it was True before.
void SetSuspended(const TrainJob& job, TrainJobStatus* status, WallTime now);

// Complete, or Failed for `reason`. `upstream` is the message that upstream writes; `cause` comes behind it.
void SetComplete(const TrainJob& job, TrainJobStatus* status, WallTime now);
void SetFailed(const TrainJob& job, TrainJobStatus* status, std::string_view reason, std::string_view upstream,
               std::string_view cause, WallTime now);

// When a job that may run for so long has to end: counted from its creation, or from its last resume.
std::optional<WallTime> DeadlineOf(const TrainJob& job, const TrainJobStatus& status, std::optional<int64_t> seconds);
void SetDeadlineExceeded(const TrainJob& job, TrainJobStatus* status, WallTime now);

}  // namespace muster::controller

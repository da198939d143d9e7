// Conditions of a PyTorchJob, with the types, reasons, messages and order of training-operator: the last one is the
// job's state. Pure. Source: training-operator v1.9, pkg/util/status.go, pkg/controller.v1/pytorch.
#pragma once

#include <string>
#include <string_view>

#include "controller/api/pytorch_job.h"
#include "controller/plan/pytorch_plan.h"

namespace muster::controller {

inline constexpr char kJobCreated[] = "Created", kJobRunning[] = "Running", kJobRestarting[] = "Restarting",
                      kJobSuspended[] = "Suspended", kJobSucceeded[] = "Succeeded", kJobFailed[] = "Failed";

// The reason of a condition or an event: "PyTorchJobCreated".
std::string ReasonOf(std::string_view type);

// Puts the condition last. Nothing changes once Failed is true, nor where one of the same status and reason is there.
// Running takes Restarting out, and Restarting takes Running out; Succeeded and Failed make both
// false: training-operator leaves Restarting true.
void SetJobCondition(PyTorchJobStatus* status, std::string_view type, bool value, std::string_view reason,
                     std::string message, WallTime now);

void SetCreated(const PyTorchJob& job, PyTorchJobStatus* status, WallTime now);
void SetRunning(const PyTorchJob& job, bool has_master, PyTorchJobStatus* status, WallTime now);
void SetSuspended(const PyTorchJob& job, PyTorchJobStatus* status, WallTime now);  // Running becomes false
void SetResumed(const PyTorchJob& job, PyTorchJobStatus* status, WallTime now);
void SetSucceeded(const PyTorchJob& job, bool has_master, PyTorchJobStatus* status, WallTime now);
// `message`: for people too; completionTime is set.
void SetFailed(PyTorchJobStatus* status, std::string message, WallTime now);

// Limits of a job, as training-operator words them in the condition Failed.
inline constexpr char kPastDeadline[] = "has failed because it was active longer than specified deadline",
                      kPastBackoffLimit[] = "has failed because it has reached the specified backoff limit";
// The job has failed by one of them.
bool IsPastLimit(const PyTorchJobStatus& status);

}  // namespace muster::controller

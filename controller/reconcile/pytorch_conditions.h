// SPDX-License-Identifier: Apache-2.0
// Conditions of a PyTorchJob, with the types, reasons, messages and order of training-operator. The last condition is
// the job's state. Pure. Source: training-operator v1.9, pkg/util/status.go, pkg/controller.v1/pytorch.
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

// Sets the condition and puts it last. Changes nothing if Failed is true, or if the condition has this value and reason
// already. Running removes Restarting, and Restarting removes Running. Succeeded and Failed set both to false;
// training-operator would leave Restarting true.
void SetJobCondition(PyTorchJobStatus* status, std::string_view type, bool value, std::string_view reason,
                     std::string message, WallTime now);

void SetCreated(const PyTorchJob& job, PyTorchJobStatus* status, WallTime now);
void SetRunning(const PyTorchJob& job, bool has_master, PyTorchJobStatus* status, WallTime now);
void SetSuspended(const PyTorchJob& job, PyTorchJobStatus* status, WallTime now);  // also sets Running to false
void SetResumed(const PyTorchJob& job, PyTorchJobStatus* status, WallTime now);
void SetSucceeded(const PyTorchJob& job, bool has_master, PyTorchJobStatus* status, WallTime now);
// `message`: for people, too. As SetSucceeded, sets completionTime if it is not set.
void SetFailed(PyTorchJobStatus* status, std::string message, WallTime now);

// What training-operator writes into the condition Failed about a job that reached a limit.
inline constexpr char kPastDeadline[] = "has failed because it was active longer than specified deadline",
                      kPastBackoffLimit[] = "has failed because it has reached the specified backoff limit";
// True if the job failed by one of these limits.
bool IsPastLimit(const PyTorchJobStatus& status);

}  // namespace muster::controller

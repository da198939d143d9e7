// SPDX-License-Identifier: Apache-2.0
#include "controller/reconcile/pytorch_conditions.h"

#include <algorithm>

#include "base/text.h"
#include "base/utf8.h"
#include "controller/api/reasons.h"

namespace muster::controller {
namespace {

// Messages name a job without a master with its namespace, too.
std::string Named(const PyTorchJob& job, bool has_master) {
  return has_master ? fmt::format("PyTorchJob {}", job.meta.name)
                    : fmt::format("PyTorchJob {}/{}", job.meta.ns, job.meta.name);
}

}  // namespace

std::string ReasonOf(std::string_view type) { return fmt::format("PyTorchJob{}", type); }

void SetJobCondition(PyTorchJobStatus* status, std::string_view type, bool value, std::string_view reason,
                     std::string message, WallTime now) {
  if (status->Is(kJobFailed)) return;
  const JobCondition* known = status->Find(type);
  if (known != nullptr && known->status == value && known->reason == reason) return;
  message.resize(Beginning(message, kLongestConditionMessage).size());
  const WallTime since = known != nullptr && known->status == value ? known->since : now;
  JobCondition condition{std::string(type), value, std::string(reason), std::move(message), now, since};
  std::erase_if(status->conditions, [type](const JobCondition& other) {
    return other.type == type || (type == kJobRunning && other.type == kJobRestarting) ||
           (type == kJobRestarting && other.type == kJobRunning);
  });
  if (value && (type == kJobSucceeded || type == kJobFailed)) {
    for (JobCondition& other : status->conditions) {
      if ((other.type != kJobRunning && other.type != kJobRestarting) || !other.status) continue;
      other.status = false;
      other.updated = other.since = now;
    }
  }
  status->conditions.push_back(std::move(condition));
}

void SetCreated(const PyTorchJob& job, PyTorchJobStatus* status, WallTime now) {
  SetJobCondition(status, kJobCreated, true, ReasonOf(kJobCreated),
                  fmt::format("PyTorchJob {} is created.", job.meta.name), now);
}

void SetRunning(const PyTorchJob& job, bool has_master, PyTorchJobStatus* status, WallTime now) {
  SetJobCondition(status, kJobRunning, true, ReasonOf(kJobRunning),
                  fmt::format("{} is running.", Named(job, has_master)), now);
}

void SetSuspended(const PyTorchJob& job, PyTorchJobStatus* status, WallTime now) {
  const std::string message = fmt::format("PyTorchJob {} is suspended.", job.meta.name);
  if (status->Is(kJobRunning)) SetJobCondition(status, kJobRunning, false, ReasonOf(kJobSuspended), message, now);
  SetJobCondition(status, kJobSuspended, true, ReasonOf(kJobSuspended), message, now);
}

void SetResumed(const PyTorchJob& job, PyTorchJobStatus* status, WallTime now) {
  SetJobCondition(status, kJobSuspended, false, reason::kPyTorchJobResumed,
                  fmt::format("PyTorchJob {} is resumed.", job.meta.name), now);
}

void SetSucceeded(const PyTorchJob& job, bool has_master, PyTorchJobStatus* status, WallTime now) {
  SetJobCondition(status, kJobSucceeded, true, ReasonOf(kJobSucceeded),
                  fmt::format("{} {}successfully completed.", Named(job, has_master), has_master ? "is " : ""), now);
  if (!status->completion_time) status->completion_time = now;
}

void SetFailed(PyTorchJobStatus* status, std::string message, WallTime now) {
  SetJobCondition(status, kJobFailed, true, ReasonOf(kJobFailed), std::move(message), now);
  if (!status->completion_time) status->completion_time = now;
}

bool IsPastLimit(const PyTorchJobStatus& status) {
  if (!status.Is(kJobFailed)) return false;
  const std::string& message = status.Find(kJobFailed)->message;
  return message.find(kPastDeadline) != std::string::npos || message.find(kPastBackoffLimit) != std::string::npos;
}

}  // namespace muster::controller

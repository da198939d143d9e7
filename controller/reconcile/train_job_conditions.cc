// SPDX-License-Identifier: Apache-2.0
#include "controller/reconcile/train_job_conditions.h"

#include <algorithm>

#include "base/text.h"
#include "base/utf8.h"
#include "controller/api/reasons.h"

namespace muster::controller {
namespace {

void SetCondition(TrainJobStatus* status, std::string_view type, bool value, const reason::Upstream& why,
                  int64_t generation, WallTime now) {
  SetCondition(status, type, value, why.reason, why.message, generation, now);
}

}  // namespace

void SetCondition(TrainJobStatus* status, std::string_view type, bool value, std::string_view reason,
                  std::string message, int64_t generation, WallTime now) {
  message.resize(Beginning(message, kLongestConditionMessage).size());
  auto found = std::find_if(status->conditions.begin(), status->conditions.end(),
                            [type](const Condition& condition) { return condition.type == type; });
  if (found == status->conditions.end()) {
    status->conditions.push_back({std::string(type), value, std::string(reason), std::move(message), now, generation});
    return;
  }
  if (found->status == value && found->reason == reason && found->message == message) return;
  if (found->status != value) found->since = now;
  found->status = value;
  found->reason = reason;
  found->message = std::move(message);
  found->generation = generation;
}

void SetSuspended(const TrainJob& job, TrainJobStatus* status, WallTime now) {
  const Condition* before = status->Find(kSuspended);
  if (job.suspend) {
    SetCondition(status, kSuspended, true, reason::kSuspended, job.meta.generation, now);
  } else if (before != nullptr && before->status) {
    SetCondition(status, kSuspended, false, reason::kResumed, job.meta.generation, now);
  }
}

void SetComplete(const TrainJob& job, TrainJobStatus* status, WallTime now) {
  SetCondition(status, kComplete, true, reason::kAllJobsCompleted, job.meta.generation, now);
  status->state = kComplete;
  status->reason = reason::kAllJobsCompleted.reason;
  status->message.clear();
  status->completion_time = now;
}

void SetFailed(const TrainJob& job, TrainJobStatus* status, std::string_view reason, std::string_view upstream,
               std::string_view cause, WallTime now) {
  std::string message(upstream);
  if (!cause.empty()) message += fmt::format(": {}", cause);
  SetCondition(status, kFailed, true, reason, message, job.meta.generation, now);
  status->state = kFailed;
  status->reason = reason;
  status->message = cause.empty() ? message : std::string(cause);
  status->completion_time = now;
}

}  // namespace muster::controller

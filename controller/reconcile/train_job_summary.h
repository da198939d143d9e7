// SPDX-License-Identifier: Apache-2.0
// The parts of a TrainJob's status other than its conditions: counts, and the state of the job. Pure.
#pragma once

#include <optional>
#include <vector>

#include "controller/reconcile/train_job_decide.h"
#include "controller/reconcile/train_job_progress.h"

namespace muster::controller {

// States for which there is no condition (see train_job_conditions.h).
inline constexpr char kCreated[] = "Created";
inline constexpr char kInitializing[] = "Initializing";
inline constexpr char kWaiting[] = "Waiting";
inline constexpr char kRunning[] = "Running";
inline constexpr char kRestarting[] = "Restarting";

// Sets the counts and, unless the job has ended, state, reason and message. `hold`: why the job does not begin yet;
// null: it may begin, or has begun. Returns when to summarize again even if nothing changes: a pod is to be named then.
std::optional<WallTime> Summarize(const TrainJob& job, const std::vector<Placed>& all, const Hold* hold, WallTime now,
                                  TrainJobStatus* status);

// Events for the changes from the status of `job` to `status`.
std::vector<EventText> EventsOf(const TrainJob& job, const TrainJobStatus& status, const Hold* hold);

// Until when the status need not be written; nullopt: write it now. Saves a write: the Job controller creates a new
// job's first pods within milliseconds, and the first status is written after that.
std::optional<WallTime> MayWaitUntil(const TrainJob& job, const std::vector<Placed>& all, const TrainJobStatus& status,
                                     WallTime now);

}  // namespace muster::controller

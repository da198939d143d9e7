// What the status of a TrainJob says beside its conditions: counts, and how far the job is. Pure.
#pragma once

#include <optional>
#include <vector>

#include "controller/reconcile/decide.h"
#include "controller/reconcile/progress.h"

namespace muster::controller {

// States that are no conditions (conditions.h).
inline constexpr char kCreated[] = "Created";
inline constexpr char kInitializing[] = "Initializing";
inline constexpr char kWaiting[] = "Waiting";
inline constexpr char kRunning[] = "Running";
inline constexpr char kRestarting[] = "Restarting";

// Fills the counts and, unless the job has ended, state, reason and message. `hold`: why the job does not begin yet;
// null: it may, or has begun.
void Summarize(const TrainJob& job, const std::vector<Placed>& all, const Hold* hold, TrainJobStatus* status);

// Events of what `status` says and the status of `job` does not.
std::vector<EventText> EventsOf(const TrainJob& job, const TrainJobStatus& status, const Hold* hold);

// Until when the status need not be written. A job that starts writes its first status once the Job controller has made
// the first pods, which takes milliseconds: that there are none yet needs no write of its own.
std::optional<WallTime> MayWaitUntil(const TrainJob& job, const std::vector<Placed>& all, const TrainJobStatus& status,
                                     WallTime now);

}  // namespace muster::controller

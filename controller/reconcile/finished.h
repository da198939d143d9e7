// The end of a TrainJob: stops what still runs, and deletes the job after its time to live. Pure.
#pragma once

#include "controller/reconcile/decide.h"

namespace muster::controller {

// Replaces the actions of `decision` by those that stop what still runs, and sets when to look again.
void StopWhatRuns(const Observed& observed, WallTime now, Decision* decision);

// Decides about a job that has ended: stops what still runs, then deletes Jobs and the TrainJob after their TTLs.
Decision DecideFinished(const TrainJob& job, const Observed& observed, WallTime now);

}  // namespace muster::controller

// The end of a TrainJob: what still runs stops, and in time the job goes. Pure.
#pragma once

#include "controller/reconcile/decide.h"

namespace muster::controller {

// What still runs ends: these are all actions of `decision` from now on, which says when to look again.
void StopWhatRuns(const Observed& observed, WallTime now, Decision* decision);

// Of a job that has ended: what still runs is deleted, and the job itself after its time.
Decision DecideFinished(const TrainJob& job, const Observed& observed, WallTime now);

}  // namespace muster::controller

// SPDX-License-Identifier: Apache-2.0
// The end of a TrainJob: stops what still runs, and deletes the job after its time to live. Pure.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <vector>

#include "controller/reconcile/train_job_decide.h"

namespace muster::controller {

// Pods that agents on other pods name as the cause of their end: host name -> when the last of those agents ended.
using NamedCauses = std::map<std::string, WallTime>;
void AddCauses(const ObservedPod& pod, NamedCauses* causes);

// Until when a pod is left alone, so that its log stays: one that has just failed (FailsUntil), a cause that its own
// agent is about to end, or one that is ended here (EndPod): its deciding container has ended (deciding.h), or the
// kubelet would start a failed container again. nullopt: any other pod.
std::optional<WallTime> AwaitLog(const ObservedPod& pod, const NamedCauses& causes, WallTime now, Steps* steps);

// Adds the action that stops a Job which runs and has `pods`: it is deleted, or suspended if a pod of it shows an end,
// so that the pod stays with its logs (the Job controller may fail the Job by its own rules). Suspending deletes
// running pods: those of AwaitLog() are awaited.
void StopJob(const ObservedJob& job, const std::vector<const ObservedPod*>& pods, WallTime now, Steps* steps);

// Replaces the actions of `decision` by those that stop what still runs, and sets when to look again.
void StopWhatRuns(const Observed& observed, WallTime now, TrainJobDecision* decision);

// Fails the job once its deadline has passed, which the TrainJob sets, else its runtime (`of_runtime`). The cause is
// what the job waits for by `decision`'s status. True: it has failed, and the caller stops what runs. False: it has no
// deadline yet, or `decision` looks again then. The time runs from the job's creation, its last resume or the end of
// its wait for other jobs, whichever was last.
bool EndAtDeadline(const TrainJob& job, std::optional<int64_t> of_runtime, WallTime now, TrainJobDecision* decision);

// Decides about a job that has ended: stops what still runs, then deletes Jobs and the TrainJob after their TTLs.
TrainJobDecision DecideFinished(const TrainJob& job, const Observed& observed, WallTime now);

}  // namespace muster::controller

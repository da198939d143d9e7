// SPDX-License-Identifier: Apache-2.0
// Runs of agents that have succeeded, and the pods of their jobs that have no part in the success: they were cut off
// from the others, or were made too late. They would wait for peers that have ended. Pure.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "controller/reconcile/observed.h"
#include "controller/reconcile/steps.h"

namespace muster::controller {

// The pods of a run end together. If one is still there this long after the first, it is told that the run is over.
inline constexpr std::chrono::seconds kRunEndsWithin{10};

// When the run of all agents of a job ended with success, by the word of an agent that took part: it ends with 0 only
// when the workers of all nodes of its round have succeeded. `run_id`: of that run; a pod may also have one of its own
// (torchrun --standalone). `least_rank`: agents with a lower rank do not count.
std::optional<WallTime> RunSucceededAt(std::string_view run_id, const std::vector<const ObservedPod*>& pods,
                                       int least_rank = 0);

// The same without a word: an index of the Job has succeeded, and its pod was deleted before the agent's word was read
// (by an eviction, while no controller was there). The run's end is not known, so it is the first moment when an agent
// of another index found nobody. nullopt: no index has succeeded unseen, or no agent has given up yet.
std::optional<WallTime> UnseenRunEndedAt(const ObservedJob& job, const std::vector<const ObservedPod*>& pods);

// Whether an index of the Job has succeeded and none of its pods tells of it.
bool HasUnseenSuccess(const ObservedJob& job, const std::vector<const ObservedPod*>& pods);

// The pod may run, but came too late for a run that ended at `ended`: its main container has not started, or the pod
// was created after the end.
bool CameTooLate(const ObservedPod& pod, WallTime ended);

// The pod's agent gave up after `ended`, since it found no coordinator or too few nodes (200, 201).
bool FoundNobody(const ObservedPod& pod, WallTime ended);

// The event about such a pod.
EventText SucceededWithout(const std::string& pod);

}  // namespace muster::controller

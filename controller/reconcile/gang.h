// SPDX-License-Identifier: Apache-2.0
// The PodGroups of a TrainJob in a gang of Kubernetes (plan/native_gang.h): each start of its pods has its own, from
// the creation of its Jobs until the step starts again, the job is suspended, or it ends. Pure.
//
// Each Job is annotated with its PodGroup, so that it can be deleted whatever the plan is by then. A PodGroup that is
// deleted exists until the last of its pods has ended. Until then the scheduler and the pods go on as before.
#pragma once

#include <string>
#include <vector>

#include "controller/reconcile/observed.h"
#include "controller/reconcile/train_job_decide.h"
#include "controller/reconcile/train_job_progress.h"

namespace muster::controller {

// The PodGroup of pods that start now. `status` has the attempt, and when the job was resumed.
std::string PodGroupOfStart(const TrainJob& job, const TrainJobStatus& status);

// Adds the creation of `planned`, which must outlive the action. The object of a start gets its name from the
// decision's status, which is then stored first: a later pass that creates more Jobs of this start must find the same
// name.
void AddCreation(const PlannedObject& planned, const TrainJob& job, TrainJobDecision* decision);

// What preempted a gang, if none of its pods runs on. Its replacements would be placed one by one beside pods that are
// ending: it needs another PodGroup, in a new attempt. Empty: no gang was preempted as a whole.
std::string PreemptedGang(const std::vector<Placed>& all);

// Adds the deletions of the PodGroups of `jobs`, each once.
void DeletePodGroups(const std::vector<const ObservedJob*>& jobs, Steps* steps);

// Adds the suspensions of the Jobs that run, after the deletions of their PodGroups: a deletion that has failed is
// repeated as long as the Jobs run.
void SuspendJobs(const std::vector<Placed>& all, Steps* steps);

// Adds the deletions of a gang whose job has ended: a PodGroup holds the devices of its claims as long as it exists.
void DeleteGang(const TrainJob& job, const std::vector<ObservedJob>& jobs, Steps* steps);

}  // namespace muster::controller

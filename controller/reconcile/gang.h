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

namespace muster::controller {

// The PodGroup of pods that start now. `status` has the attempt, and when the job was resumed.
std::string PodGroupOfStart(const TrainJob& job, const TrainJobStatus& status);

// Adds the creation of `planned`, which must outlive the action. The object of a start gets its name from the
// decision's status, which is then stored first: a later pass that creates more Jobs of this start must find the same
// name.
void AddCreation(const PlannedObject& planned, const TrainJob& job, TrainJobDecision* decision);

// Adds the deletions of the PodGroups of `jobs`, each once.
void DeletePodGroups(const std::vector<const ObservedJob*>& jobs, Steps* steps);

// Adds the deletions of a gang whose job has ended: a PodGroup holds the devices of its claims as long as it exists.
void DeleteGang(const TrainJob& job, const std::vector<ObservedJob>& jobs, Steps* steps);

}  // namespace muster::controller

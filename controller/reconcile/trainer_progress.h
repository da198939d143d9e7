// SPDX-License-Identifier: Apache-2.0
// status.trainerStatus of a TrainJob whose pods do not post it themselves (kube/webhook/status_server.h): made of what
// the agents read in the output of the workers. Pure.
#pragma once

#include <optional>

#include "base/clock.h"
#include "base/json_fields.h"
#include "base/run_facts.h"

namespace muster::controller {

// 0 to 100; nullopt: the end is not known.
std::optional<int> PercentOf(const TrainingFacts& training);

// Whether the training has moved so far that it is worth a write: to another whole percent; if the end is not known, by
// a tenth. Also if it goes back. False: nothing is told any more.
bool MovedOn(const std::optional<TrainingFacts>& told, const std::optional<TrainingFacts>& now);

// Kubeflow Trainer's TrainJobTrainerStatus: progressPercentage, estimatedRemainingSeconds, lastUpdatedTime, and the
// metrics step or epoch, and loss.
Json TrainerStatusOf(const TrainingFacts& training, WallTime now);

}  // namespace muster::controller

// SPDX-License-Identifier: Apache-2.0
// What attempt.json says about the training: the fields `training`, `curve` and `seconds`. Pure.
#pragma once

#include <string>
#include <vector>

#include "agent/report/attempt_record.h"
#include "base/status.h"

namespace muster {
class JsonFields;
}

namespace muster::agent {

// The JSON texts of the fields, each an item of a list in one line. `first_rank`: the global rank of local rank 0.
std::vector<std::string> TrainingTexts(const std::vector<RankTraining>& training, int first_rank);
std::string CurveText(const std::vector<rendezvous::CurvePoint>& curve);
std::string SpentText(const TimeSpent& spent);

// Reads them into `record`; fields that are not there leave it as it is. InvalidArgument says what is wrong: a number
// that no agent writes, more ranks than a node has, more points than a curve has.
Status ReadTraining(const JsonFields& fields, size_t most_ranks, AttemptRecord& record);

}  // namespace muster::agent

// SPDX-License-Identifier: Apache-2.0
// Asks the agents of jobs that run how far the training is, for `muster ps`.
#pragma once

#include <vector>

#include "local/state/job_progress.h"

namespace muster::local {

// All agents are asked at once, and what has come after `limit` counts. Blocks for no longer; returns at once if no job
// runs. A job whose agents do not answer, or tell no position, is not in the result.
ProgressByJob AskProgress(const std::vector<FoundJob>& jobs, Duration limit);

}  // namespace muster::local

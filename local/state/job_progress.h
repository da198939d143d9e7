// SPDX-License-Identifier: Apache-2.0
// How far the training of a job is, as its agents tell it in /status (docs/watching.md). Pure; untrusted input.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/run_facts.h"
#include "local/state/job_folders.h"

namespace muster::local {

using ProgressByJob = std::map<std::string, TrainingFacts, std::less<>>;

// nullopt: the text is not the answer of /status, or tells no position.
std::optional<TrainingFacts> ParseJobProgress(std::string_view status);

// Whether `one` is further than `other`. Steps and epochs are not compared: `one` is not further then.
bool IsFurther(const TrainingFacts& one, const std::optional<TrainingFacts>& other);

// "42%" if the end is known, else "step 1200" or "epoch 2.5".
std::string ProgressText(const TrainingFacts& training);

// Where the agents of a job that runs listen: its first nodes that run, `most` at most. Empty: it does not run.
std::vector<std::string> AgentsToAsk(const FoundJob& job, size_t most);

}  // namespace muster::local

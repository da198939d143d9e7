// How far the training of a job is, as its agents tell it in /status (docs/watching.md). Pure; untrusted input.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/clock.h"
#include "base/json_fields.h"
#include "local/state/job_folders.h"

namespace muster::local {

struct JobProgress {
  double position = 0;
  bool in_epochs = false;        // what `position` and `end` count; else steps
  std::optional<double> end;     // more than 0
  std::optional<Duration> left;  // until the end
  bool operator==(const JobProgress&) const = default;
};
using ProgressByJob = std::map<std::string, JobProgress, std::less<>>;

// nullopt: the text is not the answer of /status, or tells no position.
std::optional<JobProgress> ParseJobProgress(std::string_view status);

// Whether `one` is further than `other`. Steps and epochs are not compared: `one` is not further then.
bool IsFurther(const JobProgress& one, const std::optional<JobProgress>& other);

// "42%" if the end is known, else "step 1200" or "epoch 2.5".
std::string ProgressText(const JobProgress& progress);
Json ProgressJson(const JobProgress& progress);  // as `training` in /status

// Where the agents of a job that runs listen: its first nodes that run, `most` at most. Empty: it does not run.
std::vector<std::string> AgentsToAsk(const FoundJob& job, size_t most);

}  // namespace muster::local

// SPDX-License-Identifier: Apache-2.0
// status.goodput of a TrainJob: where the job's time went. Pure; untrusted input.
#pragma once

#include <optional>
#include <string>

#include "base/json_fields.h"
#include "base/run_facts.h"

namespace muster::controller {

// Each moment from the job's begin to the newest word of its agents counts once. All times are whole milliseconds, so
// that what is written and read again is the same, and none is more than kMostSecondsSpent.
struct JobTime {
  Duration initializers{};  // from the job's begin until its initializers had ended
  Duration pods{};          // from then on until the first agent began: scheduling, images
  Duration suspended{};     // after the first run
  WallTime since{};         // when the first agent began
  TimeSpent earlier{};      // from then on until the present run began, with the pauses between runs
  std::string pod;          // of the agent that tells `run`
  RunTime run;              // of one agent: the newest run that is known
  bool operator==(const JobTime&) const = default;
};

// From 0 to kMostSecondsSpent.
Duration Bounded(Duration time);

// Since the first agent began, without what was suspended. GoodputOf() it is the job's goodput.
TimeSpent AgentsTime(const JobTime& time);

// {percentage, since, seconds: {initializers, pods, suspended, waiting, ...}, run: {pod, since, seconds}}. Uses that
// took no time are left out.
Json WriteJobTime(const JobTime& time);
// nullopt: not such an object. A malformed field counts as absent.
std::optional<JobTime> ReadJobTime(const Json& object);

}  // namespace muster::controller

// SPDX-License-Identifier: Apache-2.0
// Accounts for a job's time (api/job_time.h) by what its agents tell. Pure.
//
// Each agent tells the time of its own run, from its start on. The agents of one attempt tell nearly the same, so one
// of them is followed: the one that began first. While its pod runs, the others do not count. If its pod is gone
// without a last word, another agent's run of the same time takes its place. A run that begins after the end of the one
// that is followed is a new one: its pods are new. The pause between the two, and its wait for other nodes, count as
// restart.
#pragma once

#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "controller/api/job_time.h"
#include "controller/reconcile/train_job_decide.h"
#include "controller/reconcile/train_job_progress.h"

namespace muster::controller {

struct AgentRun {
  std::string pod;
  bool over = false;  // the agent has ended: these are its last words
  RunTime time;
};

// What the cluster tells.
struct TimeFacts {
  std::optional<WallTime> began;         // when the job began, or was resumed before its first pod
  std::optional<WallTime> initializers;  // when the last initializer had ended
  std::optional<WallTime> resumed;       // when it was resumed last
  std::set<std::string_view> running;    // names of its pods that run
};

// `runs`: of all agents that tell theirs now, in any order. The result for the same arguments and `known` = the result
// is the same again.
std::optional<JobTime> AccountTime(std::optional<JobTime> known, std::vector<AgentRun> runs, const TimeFacts& facts);

// Sets `decision`'s status.time and training by all that the agents have told: the one that was asked, and those of the
// pods that have ended.
void Account(const std::vector<Placed>& all, const std::optional<AgentsSaid>& agents, WallTime now,
             TrainJobDecision* decision);

}  // namespace muster::controller

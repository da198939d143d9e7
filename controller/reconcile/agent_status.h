// SPDX-License-Identifier: Apache-2.0
// What the agents of a running job know before Kubernetes does, or alone: restarts within its pods, lost nodes, how far
// the training is, and where the time went. Whom to ask, and what the answer says. The agents count restarts, and write
// the number into their termination message only at their end. Until then any agent's /status has it
// (docs/watching.md). Pure; untrusted input: a pod speaks for its own job alone, because the answer belongs to the job
// whose pod was asked.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/status.h"
#include "controller/plan/plan.h"
#include "controller/plan/pytorch_plan.h"
#include "controller/reconcile/observed.h"

namespace muster::controller {

inline constexpr size_t kLongestAgentStatus = size_t{1} << 20;  // bytes; 5,000 nodes

inline constexpr size_t kMostAgentsAsked = 8;  // of one job, one after the other

struct AgentToAsk {
  std::string pod_uid;
  std::string url;
  bool operator==(const AgentToAsk&) const = default;
};
// Running pods under the agent, at most kMostAgentsAsked: ready ones first, then by job and index. Empty: there is
// none.
std::vector<AgentToAsk> WhomToAsk(const TrainJobPlan& plan, const Observed& observed);
// The same, by replica type and index. Also empty if the job has no restart to count and no other pod to lose: its
// status has no place for the training.
std::vector<AgentToAsk> WhomToAsk(const PyTorchPlan& plan, const Observed& observed);

// Takes what the agents of a job say into `known`; nullopt: the one that was asked does not answer any more, and its
// word about lost nodes is void. True: they tell of a further restart, of other lost nodes, or of a training or a time
// that has moved on. What has not moved on (trainer_progress.h; by a whole percent of goodput) stays as it is in
// `known`, so that no pass writes it.
bool TakeNews(std::optional<AgentsSaid> said, std::optional<AgentsSaid>* known);

// How long an agent whose connection closed may run by Kubernetes' word: a kubelet reports the end of a container
// within a second or two.
inline constexpr std::chrono::seconds kKubeletTells{3};

struct AgentAnswer {
  AgentsSaid said;
  std::string version;  // to ask for news after it; empty: of an older agent
  // False: another agent may know better. This one hears no coordinator, or most of the nodes fell silent for it.
  bool knows = true;
};
// InvalidArgument: `body` is not an answer of an agent. Without AgentAnswer::knows, no node is lost.
StatusOr<AgentAnswer> ReadAgentStatus(const std::string& pod_uid, std::string_view body, WallTime now);

}  // namespace muster::controller

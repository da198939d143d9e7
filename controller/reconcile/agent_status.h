// Restarts within the pods of a running job: whom to ask, and what the answer says. The agents count them, and write
// the number into their termination message only at their end. Until then any agent's /status has it
// (docs/watching.md). Pure; untrusted input: a pod speaks for its own job alone, because the answer belongs to the job
// whose pod was asked.
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "base/status.h"
#include "controller/plan/plan.h"
#include "controller/plan/pytorch_plan.h"
#include "controller/reconcile/observed.h"

namespace muster::controller {

inline constexpr size_t kLongestAgentStatus = size_t{1} << 20;  // bytes; 5,000 nodes

struct AgentToAsk {
  std::string pod_uid;
  std::string url;
  bool operator==(const AgentToAsk&) const = default;
};
// The first ready pod under the agent, by job and index. nullopt: there is none, or the job has no restart to count.
std::optional<AgentToAsk> WhomToAsk(const TrainJobPlan& plan, const Observed& observed);
// The same, by replica type and index. nullopt also if the agents' restarts do not count (RestartScope::kPod).
std::optional<AgentToAsk> WhomToAsk(const PyTorchPlan& plan, const Observed& observed);

// Takes what the agents of a job say into `known`. True: they tell of a further restart.
bool TakeNews(AgentsSaid said, std::optional<AgentsSaid>* known);

// InvalidArgument: `body` is not an answer of an agent.
StatusOr<AgentsSaid> ReadAgentStatus(const std::string& pod_uid, std::string_view body);

}  // namespace muster::controller

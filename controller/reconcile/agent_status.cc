#include "controller/reconcile/agent_status.h"

#include <tuple>

#include "base/failure_json.h"
#include "base/host_names.h"
#include "base/text.h"

namespace muster::controller {
namespace {

constexpr int kMostRestarts = 1'000'000;

// The first ready pod of those that `is_of` selects, whose agents serve `port`. nullopt: there is none.
template <class IsOf>
std::optional<AgentToAsk> FirstReady(const std::vector<ObservedPod>& pods, int port, IsOf is_of) {
  const ObservedPod* first = nullptr;
  for (const ObservedPod& pod : pods) {
    if (!is_of(pod) || !StillRuns(pod) || !pod.ready || pod.address.empty()) continue;
    if (first != nullptr && std::tie(first->index, first->meta.name) <= std::tie(pod.index, pod.meta.name)) continue;
    first = &pod;
  }
  if (first == nullptr) return std::nullopt;
  return AgentToAsk{first->meta.uid, fmt::format("http://{}/status", JoinHostPort(first->address, port))};
}

}  // namespace

std::optional<AgentToAsk> WhomToAsk(const TrainJobPlan& plan, const Observed& observed) {
  if (plan.max_restarts == 0) return std::nullopt;
  for (const PlannedJob& planned : plan.jobs) {
    if (!planned.agent || !planned.agent_port) continue;
    const auto is_of = [&planned](const ObservedPod& pod) { return pod.job == planned.name; };
    if (auto whom = FirstReady(observed.pods, *planned.agent_port, is_of)) return whom;
  }
  return std::nullopt;
}

std::optional<AgentToAsk> WhomToAsk(const PyTorchPlan& plan, const Observed& observed) {
  if (plan.restart != RestartScope::kJob || plan.budget == 0) return std::nullopt;
  for (const PlannedReplicas& planned : plan.replicas) {
    if (!planned.agent || !planned.agent_port) continue;
    const auto is_of = [&planned](const ObservedPod& pod) { return pod.replica_type == ReplicaLabel(planned.type); };
    if (auto whom = FirstReady(observed.pods, *planned.agent_port, is_of)) return whom;
  }
  return std::nullopt;
}

bool TakeNews(AgentsSaid said, std::optional<AgentsSaid>* known) {
  const bool news = said.restarts > 0 && *known != said;
  *known = std::move(said);
  return news;
}

StatusOr<AgentsSaid> ReadAgentStatus(const std::string& pod_uid, std::string_view body) {
  const Json status = ReadJsonTop(body, 3);
  if (!status.is_object()) return absl::InvalidArgumentError("/status: not a JSON object");
  JsonFields fields(status, "/status: ");
  fields.Need({"restart_count"});
  AgentsSaid said{.pod_uid = pod_uid};
  said.restarts = static_cast<int>(fields.Number("restart_count", 0, kMostRestarts).value_or(0));
  MUSTER_RETURN_IF_ERROR(fields.status());
  if (const Json* overcome = fields.Find("overcome")) {
    MUSTER_ASSIGN_OR_RETURN(said.overcome, ReadFailureJson(*overcome, "/status: overcome: "));
  }
  return said;
}

}  // namespace muster::controller

#include "controller/reconcile/agent_status.h"

#include <tuple>

#include "base/failure_json.h"
#include "base/host_names.h"
#include "base/text.h"

namespace muster::controller {
namespace {

constexpr int kMostRestarts = 1'000'000;

}  // namespace

std::optional<AgentToAsk> WhomToAsk(const Plan& plan, const Observed& observed) {
  if (plan.max_restarts == 0) return std::nullopt;
  const ObservedPod* first = nullptr;
  int port = 0;
  for (const PlannedJob& planned : plan.jobs) {
    if (!planned.agent || !planned.agent_port || first != nullptr) continue;
    for (const ObservedPod& pod : observed.pods) {
      if (pod.job != planned.name || !StillRuns(pod) || !pod.ready || pod.address.empty()) continue;
      if (first != nullptr && std::tie(first->index, first->meta.name) <= std::tie(pod.index, pod.meta.name)) continue;
      first = &pod;
      port = *planned.agent_port;
    }
  }
  if (first == nullptr) return std::nullopt;
  return AgentToAsk{first->meta.uid, fmt::format("http://{}/status", JoinHostPort(first->address, port))};
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

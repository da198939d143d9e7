// SPDX-License-Identifier: Apache-2.0
#include "controller/reconcile/agent_status.h"

#include <algorithm>
#include <tuple>

#include "base/failure_json.h"
#include "base/host_names.h"
#include "base/run_facts_json.h"
#include "base/text.h"
#include "controller/reconcile/trainer_progress.h"

namespace muster::controller {
namespace {

constexpr int kMostRestarts = 1'000'000;
constexpr size_t kMostLost = 256;     // nodes in one answer; an agent names no more
constexpr size_t kLongestText = 64;   // bytes of an address or a version
constexpr double kMostSeconds = 1e8;  // of any time in an answer

// The pods that `is_of` selects, whose agents serve `port`: ready ones first, then by index.
template <class IsOf>
void AddAgents(const std::vector<ObservedPod>& pods, int port, std::string_view path, IsOf is_of,
               std::vector<AgentToAsk>* agents) {
  std::vector<const ObservedPod*> found;
  for (const ObservedPod& pod : pods) {
    if (is_of(pod) && StillRuns(pod) && pod.phase == "Running" && !pod.address.empty()) found.push_back(&pod);
  }
  const auto order = [](const ObservedPod* pod) { return std::tie(pod->index, pod->meta.name); };
  std::sort(found.begin(), found.end(), [&order](const ObservedPod* a, const ObservedPod* b) {
    return a->ready != b->ready ? a->ready : order(a) < order(b);
  });
  for (const ObservedPod* pod : found) {
    if (agents->size() >= kMostAgentsAsked) return;
    agents->push_back({pod->meta.uid, fmt::format("http://{}{}", JoinHostPort(pod->address, port), path)});
  }
}

// Whether the goodput has changed by a whole percent, or the run is another one.
bool MovedOn(const std::optional<RunTime>& told, const std::optional<RunTime>& now) {
  if (!now) return false;
  if (!told || told->began_unix_ms != now->began_unix_ms) return true;
  const auto percent = [](const RunTime& time) { return static_cast<int>(100 * GoodputOf(time.spent).value_or(0)); };
  return percent(*told) != percent(*now);
}

template <class Fact>
bool KeepUnlessMoved(bool moved, const std::optional<Fact>& known, std::optional<Fact>* said) {
  if (!moved) *said = known;
  return moved;
}

WallTime Before(WallTime now, double seconds) {
  return now - std::chrono::duration_cast<WallTime::duration>(std::chrono::duration<double>(seconds));
}

StatusOr<std::vector<LostNode>> ReadLost(const Json& list, double heartbeat_timeout, WallTime now) {
  std::vector<LostNode> all;
  if (!list.is_array() || list.size() > kMostLost) {
    return absl::InvalidArgumentError(fmt::format("/status: 'lost' is not a list of at most {} nodes", kMostLost));
  }
  for (const Json& one : list) {
    JsonFields fields(one, "/status: lost: ");
    LostNode lost{.address = fields.Text("address"), .closed = fields.Text("how") == "closed"};
    const double since = fields.Real("lost_seconds", 0, kMostSeconds).value_or(0);
    const double heard = fields.Real("last_heard_seconds", 0, kMostSeconds).value_or(0);
    MUSTER_RETURN_IF_ERROR(fields.status());
    if (lost.address.empty() || lost.address.size() > kLongestText) continue;
    lost.lost = Before(now, since);
    lost.due = lost.closed ? lost.lost + kKubeletTells : Before(now, heard - heartbeat_timeout);
    all.push_back(std::move(lost));
  }
  return all;
}

}  // namespace

std::vector<AgentToAsk> WhomToAsk(const TrainJobPlan& plan, const Observed& observed) {
  std::vector<AgentToAsk> agents;
  for (const PlannedJob& planned : plan.jobs) {
    if (!planned.agent || !planned.agent_port) continue;
    const auto is_of = [&planned](const ObservedPod& pod) { return pod.job == planned.name; };
    AddAgents(observed.pods, *planned.agent_port, "/status?training=1", is_of, &agents);
    if (!agents.empty()) return agents;  // the agents of two Jobs do not know each other
  }
  return agents;
}

std::vector<AgentToAsk> WhomToAsk(const PyTorchPlan& plan, const Observed& observed) {
  std::vector<AgentToAsk> agents;
  int pods = 0;
  for (const PlannedReplicas& planned : plan.replicas) pods += planned.count;
  const bool counts = plan.restart == RestartScope::kJob && plan.budget != 0;
  if (!counts && (pods < 2 || !plan.RestartsInPlace())) return agents;
  for (const PlannedReplicas& planned : plan.replicas) {
    if (!planned.agent || !planned.agent_port) continue;
    const auto is_of = [&planned](const ObservedPod& pod) { return pod.replica_type == ReplicaLabel(planned.type); };
    AddAgents(observed.pods, *planned.agent_port, "/status", is_of, &agents);
  }
  return agents;
}

bool TakeNews(std::optional<AgentsSaid> said, std::optional<AgentsSaid>* known) {
  const bool lost = *known && !(*known)->lost.empty();
  if (!said) {
    if (*known) (*known)->lost.clear();
    return lost;
  }
  const bool restarted =
      said->restarts > 0 && (!*known || (*known)->restarts != said->restarts || (*known)->overcome != said->overcome ||
                             (*known)->pod_uid != said->pod_uid);
  const bool happened = restarted || lost || !said->lost.empty();
  bool news = happened;
  if (*known && !happened) {
    news = KeepUnlessMoved(MovedOn((*known)->training, said->training), (*known)->training, &said->training);
    news = KeepUnlessMoved(MovedOn((*known)->time, said->time), (*known)->time, &said->time) || news;
  } else {
    news = happened || said->training || said->time;
  }
  *known = std::move(said);
  return news;
}

StatusOr<AgentAnswer> ReadAgentStatus(const std::string& pod_uid, std::string_view body, WallTime now) {
  static constexpr JsonPlace kUnread[] = {{"nodes", 1}};
  const Json status = ReadJsonTop(body, 3, {kUnread});
  if (!status.is_object()) return absl::InvalidArgumentError("/status: not a JSON object");
  JsonFields fields(status, "/status: ");
  fields.Need({"restart_count"});
  AgentAnswer answer;
  answer.said.pod_uid = pod_uid;
  answer.said.restarts = static_cast<int>(fields.Number("restart_count", 0, kMostRestarts).value_or(0));
  answer.version = fields.Text("version");
  // It is put into a URL.
  const auto is_digit = [](char c) { return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'f'); };
  const bool usable = std::all_of(answer.version.begin(), answer.version.end(), is_digit);
  if (!usable || answer.version.size() > kLongestText) fields.Wrong("version", "a hexadecimal number");
  answer.knows = fields.Text("source") != "node" && !fields.Flag("cut_off");
  const double heartbeat_timeout = fields.Real("heartbeat_timeout_seconds", 0, kMostSeconds).value_or(0);
  MUSTER_RETURN_IF_ERROR(fields.status());
  MUSTER_ASSIGN_OR_RETURN(answer.said.time, ReadRunTime(fields, "/status: "));
  if (const Json* training = fields.Find("training")) {
    MUSTER_ASSIGN_OR_RETURN(answer.said.training, ReadTrainingJson(*training, "/status: training: "));
  }
  if (const Json* overcome = fields.Find("overcome")) {
    MUSTER_ASSIGN_OR_RETURN(answer.said.overcome, ReadFailureJson(*overcome, "/status: overcome: "));
  }
  if (const Json* lost = fields.Find("lost"); lost != nullptr && answer.knows) {
    MUSTER_ASSIGN_OR_RETURN(answer.said.lost, ReadLost(*lost, heartbeat_timeout, now));
  }
  return answer;
}

}  // namespace muster::controller

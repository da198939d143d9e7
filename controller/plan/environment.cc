#include "controller/plan/environment.h"

#include <algorithm>
#include <optional>

#include "base/quoted.h"
#include "base/text.h"
#include "controller/api/fields.h"
#include "controller/plan/plan.h"
#include "controller/plan/pod_fields.h"

namespace muster::controller {
namespace {

// In the order of their names.
constexpr const char* kReserved[] = {"PET_MASTER_ADDR", "PET_MASTER_PORT", "PET_NNODES", "PET_NODE_RANK",
                                     "PET_NPROC_PER_NODE"};
constexpr char kIndexPath[] = "metadata.annotations['batch.kubernetes.io/job-completion-index']";
constexpr int kMostPods = 1'000'000;

// A number of elasticPolicy; none: it is not there.
StatusOr<std::optional<int>> ElasticNumber(const Runtime& runtime, const char* name, int least) {
  Complaints complaints;
  Fields policy(&runtime.ml_policy.policy, fmt::format("runtime '{}': spec.mlPolicy.torch", runtime.meta.name),
                &complaints);
  const std::optional<int> number = policy.Object("elasticPolicy").Int(name, least, kMostPods);
  MUSTER_RETURN_IF_ERROR(complaints.status());
  return number;
}

bool IsElastic(const Runtime& runtime) {
  return runtime.ml_policy.framework == Framework::kTorch &&
         FindField(runtime.ml_policy.policy, "elasticPolicy") != nullptr;
}

}  // namespace

std::string NodeCount::Text() const { return elastic ? fmt::format("{}:{}", least, most) : fmt::format("{}", pods); }

StatusOr<NodeCount> ReadNodeCount(const TrainJob& job, const Runtime& runtime) {
  const std::optional<int> own = job.trainer ? job.trainer->num_nodes : std::nullopt;
  NodeCount count;
  if (!IsElastic(runtime)) {
    count.pods = own.value_or(runtime.ml_policy.num_nodes.value_or(1));
    count.least = count.most = count.pods;
    return count;
  }
  count.elastic = true;
  MUSTER_ASSIGN_OR_RETURN(const auto least, ElasticNumber(runtime, "minNodes", 1));
  MUSTER_ASSIGN_OR_RETURN(const auto most, ElasticNumber(runtime, "maxNodes", 1));
  const std::optional<int> wanted = own ? own : runtime.ml_policy.num_nodes;
  count.least = least.value_or(1);
  count.most = most.value_or(std::max(count.least, wanted.value_or(1)));
  count.pods = wanted.value_or(count.most);
  if (count.least > count.most) {
    return absl::InvalidArgumentError(
        fmt::format("runtime '{}': spec.mlPolicy.torch.elasticPolicy: minNodes {} is more than maxNodes {}",
                    runtime.meta.name, count.least, count.most));
  }
  if (count.pods < count.least || count.pods > count.most) {
    return absl::InvalidArgumentError(
        fmt::format("{}: {} is not between minNodes {} and maxNodes {} of the elasticPolicy of runtime '{}'",
                    own ? "spec.trainer.numNodes" : "spec.mlPolicy.numNodes", count.pods, count.least, count.most,
                    runtime.meta.name));
  }
  return count;
}

StatusOr<std::optional<int>> ElasticRestarts(const Runtime& runtime) {
  if (!IsElastic(runtime)) return std::optional<int>();
  return ElasticNumber(runtime, "maxRestarts", 0);
}

Status CheckReservedNames(std::string_view path, const Json& env) {
  const Json container = {{"env", env}};
  std::vector<std::string> found;
  for (const char* name : kReserved) {
    if (FindNamed(container, "env", name) != nullptr) found.push_back(name);
  }
  if (found.empty()) return absl::OkStatus();
  return absl::InvalidArgumentError(
      fmt::format("{}: must not have reserved envs, invalid envs configured: [{}]; leave them out, they follow from "
                  "numNodes and numProcPerNode",
                  path, Join(found, " ")));
}

void AddTorchVariables(const TorchFacts& facts, Json* container) {
  Json variables = Json::array();
  variables.push_back(EnvValue("PET_NNODES", facts.nodes));
  variables.push_back(EnvValue("PET_NPROC_PER_NODE", facts.processes));
  variables.push_back({{"name", "PET_NODE_RANK"}, {"valueFrom", {{"fieldRef", {{"fieldPath", kIndexPath}}}}}});
  variables.push_back(EnvValue("PET_MASTER_ADDR", facts.master));
  if (FindNamed(std::as_const(*container), "env", "PET_MASTER_PORT") == nullptr) {
    variables.push_back(EnvValue("PET_MASTER_PORT", fmt::format("{}", kTrainerPort)));
  }
  UpsertEnvFirst(variables, container);
}

void AddTorchEnvironment(const TorchFacts& facts, Json* container) {
  const Json* own_port = EnvText(*container, "PET_MASTER_PORT");
  const std::string port = own_port == nullptr ? fmt::format("{}", kTrainerPort) : own_port->get<std::string>();
  std::vector<std::pair<const char*, std::string>> wanted = {{"TRAINER_NNODES", facts.nodes},
                                                             {"TRAINER_NPROC_PER_NODE", facts.processes},
                                                             {"TRAINER_NODE_0_HOSTNAME", facts.master},
                                                             {"TRAINER_JOB_ID", facts.job_id}};
  if (facts.elastic) {
    wanted.insert(wanted.begin(), {{"PET_RDZV_BACKEND", "c10d"},
                                   {"PET_RDZV_ENDPOINT", fmt::format("{}:{}", facts.master, port)},
                                   {"PET_RDZV_ID", facts.job_id}});
  }
  Json fresh = Json::array();
  for (const auto& [name, value] : wanted) {
    if (FindNamed(std::as_const(*container), "env", name) == nullptr) fresh.push_back(EnvValue(name, value));
  }
  UpsertEnvFirst(fresh, container);
  AddTorchVariables(facts, container);
  if (const auto number = ParseInt(port); number && *number > 0 && *number <= 65535) {
    UpsertPort(static_cast<int>(*number), container);
  }
}

Status InjectIntoTargets(const TorchFacts& facts, const Runtime& runtime, std::vector<ReplicatedJob>* jobs) {
  Complaints complaints;
  Fields policy(&runtime.ml_policy.policy, fmt::format("runtime '{}': spec.mlPolicy.torch", runtime.meta.name),
                &complaints);
  Fields injection = policy.Object("envInjection");
  for (Fields& target : injection.Objects("targets")) {
    const std::string name = target.NeedText("jobName");
    const std::vector<std::string> wanted = target.Texts("containerNames").value_or(std::vector<std::string>());
    MUSTER_RETURN_IF_ERROR(complaints.status());
    const auto job = std::find_if(jobs->begin(), jobs->end(), [&](const auto& known) { return known.name == name; });
    if (job == jobs->end()) {
      std::vector<std::string> names;
      for (const ReplicatedJob& known : *jobs) names.push_back(known.name);
      return absl::InvalidArgumentError(fmt::format("{}: there is no job {}; there are: {}", target.PathOf("jobName"),
                                                    Quoted(name), Join(names, ", ")));
    }
    Json& pod = PodSpec(job->job_template);
    for (const std::string& container_name : wanted) {
      Json* container = FindNamed(pod, "containers", container_name);
      if (container == nullptr) container = FindNamed(pod, "initContainers", container_name);
      if (container == nullptr) {
        return absl::InvalidArgumentError(
            fmt::format("{}: job '{}' has no container {}; its containers are: {}; its init containers: {}",
                        target.PathOf("containerNames"), name, Quoted(container_name), NamesIn(pod, "containers"),
                        NamesIn(pod, "initContainers")));
      }
      AddTorchVariables(facts, container);
    }
  }
  return complaints.status();
}

}  // namespace muster::controller

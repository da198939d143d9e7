// SPDX-License-Identifier: Apache-2.0
#include "controller/plan/pytorch_plan.h"

#include <algorithm>

#include "base/quoted.h"
#include "base/text.h"
#include "controller/api/fields.h"
#include "controller/api/labels.h"
#include "controller/api/lenient.h"
#include "controller/api/limits.h"
#include "controller/api/reasons.h"
#include "controller/plan/agent.h"
#include "controller/plan/choice.h"
#include "controller/plan/elastic.h"
#include "controller/plan/native_gang.h"
#include "controller/plan/pod_fields.h"
#include "controller/plan/pod_rules.h"
#include "controller/plan/sizes.h"
#include "controller/plan/token.h"
#include "controller/plan/torchrun_command.h"

namespace muster::controller {
namespace {

constexpr int64_t kPodBytes = 1024, kServiceBytes = 1024;  // of a pod beside its template, and of its Service

// The container `pytorch`, else the first.
Json& MainContainer(Json& pod_template) {
  Json& pod = pod_template["spec"];
  Json* found = FindNamed(pod, "containers", kPyTorchContainer);
  return found == nullptr ? pod["containers"][0] : *found;
}

// The number of the port pytorchjob-port. Adds the port if it is absent.
int SettlePort(Json* container) {
  for (const Json& port : ListField(*container, "ports")) {
    if (TextField(port, "name") == kPyTorchPortName) return CountField(port, "containerPort");
  }
  UpsertNamed({{"name", kPyTorchPortName}, {"containerPort", kPyTorchPort}}, "ports", container);
  return kPyTorchPort;
}

class Planner {
 public:
  Planner(const PyTorchJob& job, const PyTorchOptions& options) : job_(job), options_(options) {}

  StatusOr<PyTorchPlan> Make() {
    MUSTER_ASSIGN_OR_RETURN(const std::string_view scope, ChoiceOf(job_.meta, kRestartAnnotation, "pod", "job"));
    plan_.restart = scope.empty() ? options_.restart : scope == "job" ? RestartScope::kJob : RestartScope::kPod;
    MUSTER_ASSIGN_OR_RETURN(const std::string_view agent, ChoiceOf(job_.meta, kAgentAnnotation, "on", "off"));
    MUSTER_ASSIGN_OR_RETURN(standby_, ChoiceOf(job_.meta, kStandbyAnnotation, "auto", "off"));
    plan_.has_master = job_.Find(ReplicaType::kMaster) != nullptr;
    plan_.elastic = job_.elastic.has_value();
    plan_.pods_are_ranks = plan_.has_master && ParseInt(job_.processes_per_node).value_or(1) == 1;
    plan_.budget = job_.backoff_limit;
    if (!plan_.budget && plan_.restart == RestartScope::kJob && plan_.elastic)
      plan_.budget = job_.elastic->max_restarts;
    MUSTER_RETURN_IF_ERROR(CheckReplicas());
    for (const ReplicaSpec& spec : job_.replicas) MUSTER_RETURN_IF_ERROR(AddReplicas(spec));
    const Json environment = Environment();
    for (size_t i = 0; i < templates_.size(); ++i) {
      for (Json& container : templates_[i]["spec"]["containers"]) UpsertEnvFirst(environment, &container);
      if (options_.with_agent && agent != "off") MUSTER_RETURN_IF_ERROR(AddAgent(&templates_[i], &plan_.replicas[i]));
      const bool waits = plan_.has_master && plan_.replicas[i].type == ReplicaType::kWorker;
      if (waits) MUSTER_RETURN_IF_ERROR(AddWait(&templates_[i]));
    }
    AddToken();
    if (plan_.elastic && !job_.elastic->metrics.empty()) {
      plan_.objects.push_back(Autoscaler(kKubeflowApi, kPyTorchJobKind, job_.meta.name, job_.elastic->least,
                                         job_.elastic->most, job_.elastic->metrics));
    }
    MUSTER_ASSIGN_OR_RETURN(const bool native, WantsNativeGang(job_.meta));
    MUSTER_RETURN_IF_ERROR(AddNativeGang(job_, &templates_, &plan_));
    if (!native && !options_.gang_scheduler.empty()) {
      MUSTER_RETURN_IF_ERROR(AddPodGroup(job_, options_, &templates_, &plan_));
    }
    for (PlannedObject& planned : plan_.objects) {
      Json& metadata = planned.object["metadata"];
      metadata.update(OwnedMetadata(kKubeflowApi, kPyTorchJobKind, job_.meta, TextField(metadata, "name")));
      metadata["labels"].update({{kOperatorNameLabel, kPyTorchOperator}, {kTrainingJobLabel, job_.meta.name}});
    }
    MUSTER_RETURN_IF_ERROR(Pack());
    return std::move(plan_);
  }

 private:
  Status CheckReplicas() const {
    if (job_.AllReplicas() <= kMostMade) return absl::OkStatus();
    return absl::InvalidArgumentError(fmt::format(
        "spec.pytorchReplicaSpecs: {} replicas together, and {} are the most; use fewer, with more processes "
        "on each (nprocPerNode)",
        job_.AllReplicas(), kMostMade));
  }

  Status Pack() {
    int64_t others = 0;
    for (const PlannedObject& planned : plan_.objects) others += BytesOf(planned.object);
    for (size_t i = 0; i < templates_.size(); ++i) {
      PlannedReplicas& replicas = plan_.replicas[i];
      replicas.pod_template = PackedJson(std::exchange(templates_[i], nullptr));
      const int64_t pod = static_cast<int64_t>(replicas.pod_template.bytes()) + kPodBytes;
      MUSTER_RETURN_IF_ERROR(CheckObjectBytes(fmt::format("{}.template: a pod", ReplicaPath(replicas.type)), pod));
      MUSTER_RETURN_IF_ERROR(
          CheckMadeBytes(ReplicaPath(replicas.type) + ".replicas", replicas.count, pod + kServiceBytes, others));
      others += replicas.count * (pod + kServiceBytes);
    }
    return absl::OkStatus();
  }

  Status AddReplicas(const ReplicaSpec& spec) {
    const std::string last = ReplicaObjectName(job_.meta, spec.type, std::max(0, spec.replicas - 1));
    if (last.size() > kLongestLabel) {
      return absl::InvalidArgumentError(
          fmt::format("metadata.name: {} is too long: the Service {} would have {} characters, and {} are the most; "
                      "take a name that is {} shorter",
                      Quoted(job_.meta.name), last, last.size(), kLongestLabel, last.size() - kLongestLabel));
    }
    MUSTER_RETURN_IF_ERROR(
        CheckPodRules(spec.pod_template, PodOwner::kItself, fmt::format("{}.template", ReplicaPath(spec.type))));
    PlannedReplicas replicas{.type = spec.type,
                             .count = spec.replicas,
                             .first_rank = spec.type == ReplicaType::kWorker && plan_.has_master ? 1 : 0,
                             .restart = spec.restart,
                             .pod_template = {},
                             .ports = Json::array()};
    Json& pod_template = templates_.emplace_back(spec.pod_template);
    SetRestartPolicy(replicas, &pod_template["spec"]);
    Json& main = MainContainer(pod_template);
    (spec.type == ReplicaType::kMaster ? master_port_ : worker_port_) = SettlePort(&main);
    for (const Json& port : ListField(main, "ports")) {
      const std::string name = TextField(port, "name");
      if (name.empty()) continue;
      Json made = {{"name", name}, {"port", CountField(port, "containerPort")}};
      PutText(made, "protocol", TextField(port, "protocol"));
      replicas.ports.push_back(std::move(made));
    }
    plan_.replicas.push_back(std::move(replicas));
    return absl::OkStatus();
  }

  // With RestartScope::kJob the controller and the agents restart the job, so the kubelet must restart no container.
  void SetRestartPolicy(const PlannedReplicas& replicas, Json* pod) {
    std::string policy = "Never";
    if (plan_.restart == RestartScope::kPod && replicas.restart == RestartPolicy::kOnFailure) policy = "OnFailure";
    if (plan_.restart == RestartScope::kPod && replicas.restart == RestartPolicy::kAlways) policy = "Always";
    if (const std::string own = TextField(*pod, "restartPolicy"); !own.empty() && own != policy) {
      plan_.notices.push_back({reason::kSetPodTemplateRestartPolicy,
                               fmt::format("Restart policy in pod template overridden by restart policy in replica "
                                           "spec: {}.template.spec.restartPolicy: {} becomes {}",
                                           ReplicaPath(replicas.type), own, policy),
                               true});
    }
    (*pod)["restartPolicy"] = policy;
  }

  // The variables of all containers. PodOfReplica() sets the rank.
  Json Environment() const {
    Json variables = Json::array();
    const auto put = [&variables](std::string_view name, std::string_view value) {
      variables.push_back(EnvValue(name, value));
    };
    put("PYTHONUNBUFFERED", "1");
    const std::string processes = !job_.processes_per_node.empty() || !plan_.elastic
                                      ? job_.processes_per_node
                                      : fmt::format("{}", *job_.elastic->processes_per_node);
    const int all = job_.AllReplicas();
    if (plan_.has_master) {
      const std::string host = ReplicaObjectName(job_.meta, ReplicaType::kMaster, 0);
      const std::string port = fmt::format("{}", master_port_);
      // In training-operator, nProcPerNode of elasticPolicy (deprecated) does not count for WORLD_SIZE.
      const auto number = ParseInt(job_.processes_per_node);
      for (const char* name : {"MASTER_ADDR", "PET_MASTER_ADDR"}) put(name, host);
      for (const char* name : {"MASTER_PORT", "PET_MASTER_PORT"}) put(name, port);
      put("WORLD_SIZE", fmt::format("{}", all * number.value_or(1)));
      for (const char* name : {"RANK", "PET_NODE_RANK"}) put(name, "0");  // PodOfReplica() sets it
    }
    put("PET_NPROC_PER_NODE", processes);
    if (!plan_.elastic) {
      put("PET_NNODES", fmt::format("{}", all));
      return variables;
    }
    const ElasticPolicy& elastic = *job_.elastic;
    const std::string host =
        elastic.rdzv_host.empty() ? ReplicaObjectName(job_.meta, ReplicaType::kWorker, 0) : elastic.rdzv_host;
    put("PET_NNODES", fmt::format("{}:{}", elastic.least, elastic.most));
    put("PET_RDZV_ENDPOINT", fmt::format("{}:{}", host, elastic.rdzv_port.value_or(worker_port_)));
    put("PET_RDZV_BACKEND", elastic.rdzv_backend);
    if (elastic.max_restarts) put(kMaxRestartsVariable, fmt::format("{}", *elastic.max_restarts));
    if (!elastic.rdzv_id.empty()) put("PET_RDZV_ID", elastic.rdzv_id);
    std::vector<std::string> conf;
    for (const auto& [key, value] : elastic.rdzv_conf) conf.push_back(fmt::format("{}={}", key, value));
    if (!conf.empty()) put("PET_RDZV_CONF", Join(conf, ","));
    if (elastic.standalone) put("PET_STANDALONE", "1");  // torchrun reads it as a number
    return variables;
  }

  Status AddAgent(Json* pod_template, PlannedReplicas* replicas) {
    Json& main = MainContainer(*pod_template);
    const AgentPlace place{.name = ReplicaPath(replicas->type),
                           .no_command = fmt::format("since container '{}' has none and an image's ENTRYPOINT is in "
                                                     "the image alone; give it a command",
                                                     TextField(main, "name")),
                           .pod = &(*pod_template)["spec"],
                           .container = &main};
    AgentUse use;
    // Decides which failures the agent restarts in the pod. Under Always, the kubelet restarts after a success.
    use.policy = replicas->restart == RestartPolicy::kExitCode ? RestartPolicy::kExitCode : RestartPolicy::kOnFailure;
    use.job = job_.meta.name;
    use.standby = standby_;
    use.probe = false;  // as in v1: a running pod without a probe of its own is ready
    const bool is_torchrun = TorchrunOf(*place.container) != Torchrun::kNone;
    MUSTER_ASSIGN_OR_RETURN(replicas->agent, PutAgent(place, options_.agent, use, &plan_.notices));
    if (replicas->agent) replicas->agent_port = AgentPort(*place.pod, main);
    replicas->meets = replicas->agent && is_torchrun;
    if (replicas->agent && plan_.elastic) {
      SetNodes(job_.AllReplicas(), pod_template, &main);
    }
    return absl::OkStatus();
  }

  Status AddWait(Json* pod_template) {
    Json& pod = (*pod_template)["spec"];
    MUSTER_ASSIGN_OR_RETURN(
        const Json waits,
        WaitContainers(options_, ReplicaObjectName(job_.meta, ReplicaType::kMaster, 0), MainContainer(*pod_template)));
    for (const Json& container : waits) UpsertNamed(container, "initContainers", &pod);
    return absl::OkStatus();
  }

  // Agents of several pods authenticate to each other by the token.
  void AddToken() {
    if (job_.AllReplicas() < 2 && !plan_.elastic) return;
    bool asks = false;
    for (size_t i = 0; i < templates_.size(); ++i) {
      Json& main = MainContainer(templates_[i]);
      if (!plan_.replicas[i].agent || HasOwnToken(main)) continue;
      MountToken(TokenSecretName(job_.meta), &templates_[i]["spec"], &main);
      asks = true;
    }
    if (asks) plan_.objects.push_back(TokenSecret(job_.meta));
  }

  const PyTorchJob& job_;
  const PyTorchOptions& options_;
  PyTorchPlan plan_;
  std::vector<Json> templates_;  // of the pods of each of plan_.replicas
  std::string_view standby_;     // of kStandbyAnnotation
  int master_port_ = kPyTorchPort, worker_port_ = kPyTorchPort;
};

// v1's labels of a replica's pod and Service. They are the selector of the Service.
Json LabelsOf(const Meta& job, ReplicaType type, int index) {
  return {{kOperatorNameLabel, kPyTorchOperator},
          {kTrainingJobLabel, job.name},
          {kReplicaTypeLabel, ReplicaLabel(type)},
          {kReplicaIndexLabel, fmt::format("{}", index)}};
}

}  // namespace

const PlannedReplicas* PyTorchPlan::Find(ReplicaType type) const {
  const auto found = std::find_if(replicas.begin(), replicas.end(), [type](const auto& r) { return r.type == type; });
  return found == replicas.end() ? nullptr : &*found;
}

bool PyTorchPlan::RestartsInPlace() const {
  return std::all_of(replicas.begin(), replicas.end(), [](const auto& r) { return r.meets; });
}

StatusOr<PyTorchPlan> PlanPyTorchJob(const PyTorchJob& job, const PyTorchOptions& options) {
  return Planner(job, options).Make();
}

std::string ReplicaObjectName(const Meta& job, ReplicaType type, int index) {
  return fmt::format("{}-{}-{}", job.name, ReplicaLabel(type), index);
}

std::string ReplicaSelector(const Meta& job, ReplicaType type) {
  return fmt::format("{}={},{}={},{}={}", kTrainingJobLabel, job.name, kOperatorNameLabel, kPyTorchOperator,
                     kReplicaTypeLabel, ReplicaLabel(type));
}

Json PodOfReplica(const PyTorchJob& job, const PyTorchPlan& plan, const PlannedReplicas& replicas, int index,
                  const PodAttempt& attempt) {
  Json metadata =
      OwnedMetadata(kKubeflowApi, kPyTorchJobKind, job.meta, ReplicaObjectName(job.meta, replicas.type, index));
  Json pod_template = replicas.pod_template.Unpack();
  const Json& own = PartOf(pod_template, "metadata");
  for (const char* field : {"labels", "annotations"}) metadata[field] = MapField(own, field);
  if (const Json& finalizers = ListField(own, "finalizers"); !finalizers.empty()) metadata["finalizers"] = finalizers;
  metadata["labels"].update(LabelsOf(job.meta, replicas.type, index));
  const bool leads = replicas.type == ReplicaType::kMaster || (!plan.has_master && index == 0);
  if (leads) metadata["labels"][kJobRoleLabel] = "master";
  metadata["annotations"][kAttemptAnnotation] = fmt::format("{}", attempt.attempt);
  if (plan.restart == RestartScope::kJob) {
    metadata["annotations"][kRestartsLeftAnnotation] = fmt::format("{}", attempt.restarts_left);
  }
  Json spec = std::move(pod_template["spec"]);
  // The kubelet starts a container again before anything can stop it. After the last restart it must not.
  const bool is_last = plan.budget && attempt.restarts_left == 0 && replicas.restart == RestartPolicy::kOnFailure;
  if (is_last) spec["restartPolicy"] = "Never";
  for (Json& container : spec["containers"]) {
    if (plan.has_master) {
      const std::string rank = fmt::format("{}", replicas.first_rank + index);
      for (const char* name : {"RANK", "PET_NODE_RANK"}) UpsertEnv(EnvValue(name, rank), &container);
    }
    if (plan.restart == RestartScope::kJob && replicas.agent) {
      const int left = replicas.restart == RestartPolicy::kNever ? 0 : attempt.restarts_left;
      UpsertEnv(EnvValue(kMaxRestartsVariable, fmt::format("{}", left)), &container);
    }
  }
  return {{"apiVersion", "v1"}, {"kind", "Pod"}, {"metadata", std::move(metadata)}, {"spec", std::move(spec)}};
}

Json ServiceOfReplica(const PyTorchJob& job, const PlannedReplicas& replicas, int index) {
  Json metadata =
      OwnedMetadata(kKubeflowApi, kPyTorchJobKind, job.meta, ReplicaObjectName(job.meta, replicas.type, index));
  const Json labels = LabelsOf(job.meta, replicas.type, index);
  metadata["labels"] = labels;
  // The name resolves once the pod has an address, so that a readiness probe of the master does not delay the workers.
  const Json spec = {
      {"clusterIP", "None"}, {"publishNotReadyAddresses", true}, {"selector", labels}, {"ports", replicas.ports}};
  return {{"apiVersion", "v1"}, {"kind", "Service"}, {"metadata", std::move(metadata)}, {"spec", spec}};
}

}  // namespace muster::controller

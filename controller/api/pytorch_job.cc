// SPDX-License-Identifier: Apache-2.0
#include "controller/api/pytorch_job.h"

#include <algorithm>
#include <string_view>

#include "base/text.h"
#include "controller/api/lenient.h"
#include "controller/api/limits.h"
#include "controller/api/pod_template.h"

namespace muster::controller {
namespace {

constexpr std::pair<std::string_view, RestartPolicy> kPolicies[] = {{"Always", RestartPolicy::kAlways},
                                                                    {"OnFailure", RestartPolicy::kOnFailure},
                                                                    {"Never", RestartPolicy::kNever},
                                                                    {"ExitCode", RestartPolicy::kExitCode}};

Json WithoutNulls(Json json) {
  DropNulls(&json);
  return json;
}

RestartPolicy ReadPolicy(Fields& replica) {
  const std::string word = replica.Word("restartPolicy", {"Always", "OnFailure", "Never", "ExitCode"});
  for (const auto& [name, policy] : kPolicies) {
    if (word == name) return policy;
  }
  return RestartPolicy::kOnFailure;
}

ReplicaSpec ReadReplica(ReplicaType type, Fields replica) {
  ReplicaSpec spec{.type = type, .pod_template = Json()};
  spec.replicas = replica.Int("replicas", 0, kMostMade).value_or(1);
  spec.restart = ReadPolicy(replica);
  if (replica.Find("template") == nullptr) replica.Wrong("template", "it is missing; give the pods a template");
  CheckPodTemplate(replica.Object("template"), Extent::kWhole);
  spec.pod_template = WithoutNulls(replica.Copy("template"));
  for (const char* part : {"metadata", "spec"}) {
    if (spec.pod_template.is_object() && !spec.pod_template.contains(part)) spec.pod_template[part] = Json::object();
  }
  replica.NoOthers();
  return spec;
}

std::vector<ReplicaSpec> ReadReplicas(Fields& spec) {
  std::vector<ReplicaSpec> replicas;
  Fields specs = spec.Object("pytorchReplicaSpecs");
  if (!specs) {
    spec.Wrong("pytorchReplicaSpecs", "it is missing; it needs Master, Worker, or both");
    return replicas;
  }
  for (const ReplicaType type : kReplicaTypes) {
    for (const auto& [key, value] : specs.Whole()->items()) {
      if (Lower(key) != ReplicaLabel(type) || value.is_null()) continue;
      if (!replicas.empty() && replicas.back().type == type) {
        specs.Wrong(key.c_str(), "there are two of this type, in different letter case; keep one");
        continue;
      }
      replicas.push_back(ReadReplica(type, specs.Object(key.c_str())));
    }
  }
  for (const auto& [key, value] : specs.Whole()->items()) {
    if (Lower(key) != "master" && Lower(key) != "worker")
      specs.Wrong(key.c_str(), "is not a type of replicas; the types are Master and Worker");
  }
  return replicas;
}

std::vector<std::pair<std::string, std::string>> ReadConf(Fields& elastic) {
  std::vector<std::pair<std::string, std::string>> conf;
  for (Fields& entry : elastic.Objects("rdzvConf")) conf.emplace_back(entry.NeedText("key"), entry.Text("value"));
  return conf;
}

std::optional<ElasticPolicy> ReadElastic(Fields elastic, const std::vector<ReplicaSpec>& replicas) {
  if (!elastic) return std::nullopt;
  ElasticPolicy policy;
  const auto least = elastic.Int("minReplicas", 1, kMostMade), most = elastic.Int("maxReplicas", 1, kMostMade);
  int workers = 1;
  for (const ReplicaSpec& replica : replicas) {
    if (replica.type == ReplicaType::kWorker) workers = std::max(replica.replicas, 1);
  }
  policy.least = least.value_or(most.value_or(workers));
  policy.most = most.value_or(policy.least);
  if (policy.least > policy.most) {
    elastic.Wrong("minReplicas", fmt::format("{} is more than maxReplicas, {}", policy.least, policy.most));
  }
  const std::string backend = elastic.Word("rdzvBackend", {"c10d", "etcd", "etcd-v2"});
  if (!backend.empty()) policy.rdzv_backend = backend;
  policy.rdzv_host = elastic.Text("rdzvHost");
  policy.rdzv_port = elastic.Int("rdzvPort", 1, 65535);
  policy.rdzv_id = elastic.Text("rdzvId");
  policy.rdzv_conf = ReadConf(elastic);
  policy.standalone = elastic.Flag("standalone", false);
  policy.processes_per_node = elastic.Int("nProcPerNode", 1, kMostProcesses);
  policy.max_restarts = elastic.Int("maxRestarts", 0);
  elastic.Objects("metrics");
  if (Json metrics = elastic.Copy("metrics"); metrics.is_array()) policy.metrics = WithoutNulls(std::move(metrics));
  elastic.NoOthers();
  return policy;
}

void ReadProcesses(Fields& spec, PyTorchJob* job) {
  const bool old = job->elastic && job->elastic->processes_per_node;
  job->processes_per_node = spec.Text("nprocPerNode");
  const std::string& text = job->processes_per_node;
  if (text.empty()) {
    if (!old) job->processes_per_node = "auto";
    return;
  }
  const auto number = ParseInt(text);
  if (number && *number >= 1 && *number <= kMostProcesses) return;
  // Accepts any word: which ones torchrun knows depends on the devices of its PyTorch.
  if ((text[0] | 0x20) >= 'a' && (text[0] | 0x20) <= 'z') return;
  spec.Wrong("nprocPerNode", text,
             fmt::format("is not a whole number from 1 to {}, and no word such as auto, cpu, gpu", kMostProcesses));
}

SchedulingPolicy ReadScheduling(Fields fields) {
  SchedulingPolicy policy;
  policy.min_available = fields.Int("minAvailable", 0);
  policy.queue = fields.Text("queue");
  CheckQuantities(fields, "minResources");
  policy.min_resources = WithoutNulls(fields.Copy("minResources"));
  policy.priority_class = fields.Text("priorityClass");
  policy.timeout_seconds = fields.Int("scheduleTimeoutSeconds", 0);
  fields.NoOthers();
  return policy;
}

void ReadRunPolicy(Fields& policy, PyTorchJob* job) {
  const std::string clean = policy.Word("cleanPodPolicy", {"None", "Running", "All"});
  if (clean == "Running") job->clean = CleanPodPolicy::kRunning;
  if (clean == "All") job->clean = CleanPodPolicy::kAll;
  job->ttl_seconds_after_finished = policy.Number("ttlSecondsAfterFinished", 0);
  job->active_deadline_seconds = policy.Number("activeDeadlineSeconds", 0);
  job->backoff_limit = policy.Int("backoffLimit", 0);
  job->scheduling = ReadScheduling(policy.Object("schedulingPolicy"));
  job->suspend = policy.Flag("suspend", false);
  policy.Text("managedBy");
  policy.NoOthers();
}

}  // namespace

std::string_view ReplicaName(ReplicaType type) { return type == ReplicaType::kMaster ? "Master" : "Worker"; }
std::string_view ReplicaLabel(ReplicaType type) { return type == ReplicaType::kMaster ? "master" : "worker"; }
std::string ReplicaPath(ReplicaType type) { return fmt::format("spec.pytorchReplicaSpecs.{}", ReplicaName(type)); }

const ReplicaSpec* PyTorchJob::Find(ReplicaType type) const {
  const auto found = std::find_if(replicas.begin(), replicas.end(), [type](const auto& r) { return r.type == type; });
  return found == replicas.end() ? nullptr : &*found;
}

int PyTorchJob::AllReplicas() const {
  int all = 0;
  for (const ReplicaSpec& replica : replicas) all += replica.replicas;
  return all;
}

bool IsPyTorchJobManagedByMuster(const Json& object) {
  const Json* managed_by = FindField(PartOf(object, "spec", "runPolicy"), "managedBy");
  return managed_by == nullptr || *managed_by == kManagedByTrainingOperator;
}

StatusOr<PyTorchJob> ReadPyTorchJob(const Json& object, UnknownFields* unknown) {
  PyTorchJob job;
  MUSTER_ASSIGN_OR_RETURN(job.meta, ReadMeta(object));
  Complaints complaints(unknown);
  Fields root(&object, "", &complaints);
  const std::string api = root.Text("apiVersion"), kind = root.Text("kind");
  if (!api.empty() && api != kKubeflowApi) {
    complaints.Wrong("apiVersion", std::string_view(api), fmt::format("is not {}", kKubeflowApi));
  }
  if (!kind.empty() && kind != kPyTorchJobKind) {
    complaints.Wrong("kind", std::string_view(kind), fmt::format("is not {}", kPyTorchJobKind));
  }
  Fields spec = root.Object("spec");
  if (!spec) complaints.Wrong("spec", "it is missing");
  job.replicas = ReadReplicas(spec);
  job.elastic = ReadElastic(spec.Object("elasticPolicy"), job.replicas);
  ReadProcesses(spec, &job);
  Fields run_policy = spec.Object("runPolicy");
  ReadRunPolicy(run_policy, &job);
  spec.NoOthers("", &run_policy);
  MUSTER_RETURN_IF_ERROR(complaints.status());
  job.status = ReadPyTorchJobStatus(PartOf(object, "status"));
  return job;
}

}  // namespace muster::controller

// SPDX-License-Identifier: Apache-2.0
#include "controller/plan/convert/convert.h"

#include <algorithm>
#include <optional>

#include "base/quoted.h"
#include "base/text.h"
#include "controller/api/labels.h"
#include "controller/api/lenient.h"
#include "controller/api/runtime.h"
#include "controller/api/train_job.h"
#include "controller/plan/agent.h"
#include "controller/plan/convert/convert_pods.h"
#include "controller/plan/plan.h"
#include "controller/plan/restart_policy.h"
#include "controller/plan/train_job_plan.h"

namespace muster::controller {
namespace {

constexpr char kFrameworkLabel[] = "trainer.kubeflow.org/framework";
constexpr char kAppliedAnnotation[] = "kubectl.kubernetes.io/last-applied-configuration";

class Converter {
 public:
  Converter(const Json& object, const PyTorchJob& job, const UnknownFields& unknown, const ConvertOptions& options)
      : object_(object), job_(job), unknown_(unknown), options_(options) {}

  StatusOr<ConvertedJob> Make() {
    MUSTER_ASSIGN_OR_RETURN(plan_, PlanPyTorchJob(job_, {.with_agent = false}));
    MUSTER_ASSIGN_OR_RETURN(pods_, ConvertPods(job_, plan_, &remarks_));
    ReadOwnRestarts();
    train_job_ = {{"runtimeRef", {{"apiGroup", kTrainerGroup}, {"kind", "TrainingRuntime"}, {"name", job_.meta.name}}}};
    const Json labels = {{kAncestorLabel, "trainer"}};
    job_template_ = {{"metadata", {{"labels", labels}}}, {"spec", Json::object()}};
    AddNodes();
    AddRestarts();
    AddScheduling();
    AddEnding();
    AddManager();
    for (const auto& [path, nearest] : unknown_) {
      const bool is_kept = path.find(".template.") != std::string::npos;  // pods are converted with all their fields
      if (!is_kept) Remark(path, "is not a field of a PyTorchJob: it is left out");
    }
    job_template_["spec"]["template"] = std::move(pods_.pod_template);
    job_set_["replicatedJobs"] = Json::array({{{"name", kNodeJob}, {"template", std::move(job_template_)}}});
    runtime_["template"]["spec"] = std::move(job_set_);
    return Checked();
  }

 private:
  const Json& RunPolicy() const { return PartOf(object_, "spec", "runPolicy"); }
  void Remark(std::string_view path, std::string_view what) { remarks_.push_back(fmt::format("{}: {}", path, what)); }

  // PET_MAX_RESTARTS in v1's pods: from elasticPolicy, else the container's own.
  void ReadOwnRestarts() {
    const Json& container = PartOf(pods_.pod_template, "spec", "containers")[pods_.trainer];
    if (const auto own = OwnRestarts(kNodeJob, container); own.ok()) own_restarts_ = *own;
    if (job_.elastic && job_.elastic->max_restarts) own_restarts_ = job_.elastic->max_restarts;
  }

  void AddNodes() {
    Json torch = {{"numProcPerNode", Processes()}};
    const int all = job_.AllReplicas();
    if (!job_.elastic) {
      runtime_["mlPolicy"] = {{"numNodes", all}, {"torch", std::move(torch)}};
      return;
    }
    const ElasticPolicy& elastic = *job_.elastic;
    Json policy = {{"minNodes", elastic.least}, {"maxNodes", elastic.most}};
    if (elastic.max_restarts) policy["maxRestarts"] = *elastic.max_restarts;
    if (!elastic.metrics.empty()) policy["metrics"] = elastic.metrics;
    torch["elasticPolicy"] = std::move(policy);
    runtime_["mlPolicy"] = {{"torch", std::move(torch)}};
    const int nodes = std::clamp(all, elastic.least, elastic.most);
    train_job_["trainer"]["numNodes"] = nodes;
    if (nodes != all) {
      Remark("spec.elasticPolicy", fmt::format("the PyTorchJob has {}, and PET_NNODES is {}:{}: numNodes is {}",
                                               Counted(all, "pod"), elastic.least, elastic.most, nodes));
    }
    if (plan_.has_master && !elastic.metrics.empty()) {
      Remark("spec.elasticPolicy.metrics",
             "v1 scales the Workers between minReplicas and maxReplicas; here these "
             "bounds are of all nodes, node 0 among them");
    }
  }

  Json Processes() {
    const std::string& text = pods_.processes;
    if (const auto number = ParseInt(text)) return *number;
    if (text == "auto" || text == "cpu" || text == "gpu") return text;
    Remark("spec.nprocPerNode",
           fmt::format(
               "{} is not a value of a runtime; it becomes auto: torchrun takes the devices that its PyTorch finds",
               Quoted(text)));
    return "auto";
  }

  bool WithAgent() const { return pods_.own_command && job_.meta.Annotation(kAgentAnnotation) != "off"; }

  void AddRestarts() {
    const ReplicaSpec& spec = job_.replicas.front();
    const std::string path = fmt::format("{}.restartPolicy", ReplicaPath(spec.type));
    RestartPolicy policy = spec.restart;
    if (policy == RestartPolicy::kAlways && !WithAgent()) {
      Remark(path,
             "Always needs the agent, and the agent needs a known command; it becomes on-failure: Kubernetes restarts "
             "no command that has succeeded");
      policy = RestartPolicy::kOnFailure;
    }
    if (policy == RestartPolicy::kNever && own_restarts_.value_or(0) > 0) {
      Remark(path, fmt::format("Never, but torchrun restarts its workers {} times (PET_MAX_RESTARTS); it becomes "
                               "on-failure, which keeps these restarts: one of them may replace a pod",
                               *own_restarts_));
      policy = RestartPolicy::kOnFailure;
    }
    job_template_["metadata"]["annotations"][kRestartPolicyAnnotation] = RestartPolicyName(policy);
    if (job_.meta.Annotation(kRestartAnnotation) == "pod") {
      Remark(fmt::format("metadata.annotations.{}", kRestartAnnotation),
             "pod is left out: the nodes of a TrainJob start their next attempt together");
    }
    AddBudget(policy);
  }

  void AddBudget(RestartPolicy policy) {
    constexpr char kPath[] = "spec.runPolicy.backoffLimit";
    if (policy == RestartPolicy::kNever) {
      if (WithAgent()) job_set_["failurePolicy"]["maxRestarts"] = 0;
      return;
    }
    if (own_restarts_ && WithAgent()) {
      if (job_.backoff_limit && *job_.backoff_limit != *own_restarts_) {
        Remark(kPath, fmt::format("{} is left out: a TrainJob has one budget, and PET_MAX_RESTARTS, {}, is it",
                                  *job_.backoff_limit, *own_restarts_));
      }
      return;
    }
    const int budget = job_.backoff_limit.value_or(kUnlimitedRestarts);
    if (!job_.backoff_limit) {
      Remark("spec.runPolicy",
             fmt::format("backoffLimit is not there, and v1 restarts without a limit: {} is {}; lower it to "
                         "what you want",
                         WithAgent() ? "failurePolicy.maxRestarts" : "backoffLimit of the Job", budget));
    }
    if (WithAgent()) {
      job_set_["failurePolicy"]["maxRestarts"] = budget;
    } else {
      job_template_["spec"]["backoffLimit"] = budget;
    }
  }

  // The job does not name its gang scheduler: in v1 a flag of the operator does.
  void AddScheduling() {
    constexpr char kPath[] = "spec.runPolicy.schedulingPolicy";
    const SchedulingPolicy& policy = job_.scheduling;
    if (MapField(RunPolicy(), "schedulingPolicy").empty()) return;
    Json& pod = pods_.pod_template["spec"];
    if (TextField(pod, "schedulerName").empty()) PutText(pod, "schedulerName", options_.gang_scheduler);
    const std::string scheduler = TextField(pod, "schedulerName");
    if (scheduler.empty()) {
      return Remark(kPath,
                    "is left out: the job names no scheduler; if the operator was run with --gang-scheduler-name, give "
                    "convert the same flag");
    }
    const bool volcano = scheduler == kVolcanoScheduler;
    if (volcano) {
      runtime_["podGroupPolicy"]["volcano"] = Json::object();
      if (!policy.queue.empty())
        runtime_["template"]["metadata"]["annotations"][kVolcanoQueueAnnotation] = policy.queue;
      if (TextField(pod, "priorityClassName").empty()) PutText(pod, "priorityClassName", policy.priority_class);
    } else {
      Json& coscheduling = runtime_["podGroupPolicy"]["coscheduling"] = Json::object();
      if (policy.timeout_seconds) coscheduling["scheduleTimeoutSeconds"] = *policy.timeout_seconds;
    }
    RemarkGroup(kPath, policy, volcano);
  }

  void RemarkGroup(const std::string& path, const SchedulingPolicy& policy, bool volcano) {
    const auto left_out = [&](const char* field, std::string_view why) {
      Remark(fmt::format("{}.{}", path, field), fmt::format("is left out: {}", why));
    };
    if (policy.min_available && *policy.min_available != job_.AllReplicas()) {
      left_out("minAvailable", "the group of a TrainJob has all its nodes, or minNodes of an elastic one");
    }
    if (!policy.min_resources.is_null()) left_out("minResources", "they are what the pods request");
    if (volcano && policy.timeout_seconds) left_out("scheduleTimeoutSeconds", "Volcano has no such field");
    if (!volcano && !policy.queue.empty()) left_out("queue", "only Volcano has queues");
    if (!volcano && !policy.priority_class.empty()) {
      left_out("priorityClass", "only Volcano's groups have one; the pods' priorityClassName stays");
    }
  }

  void AddEnding() {
    if (job_.suspend) train_job_["suspend"] = true;
    if (job_.active_deadline_seconds) {
      train_job_["activeDeadlineSeconds"] = std::max<int64_t>(1, *job_.active_deadline_seconds);
      if (*job_.active_deadline_seconds == 0) {
        Remark("spec.runPolicy.activeDeadlineSeconds", "0 fails the job at once; 1 is the least of a TrainJob");
      }
    }
    if (job_.ttl_seconds_after_finished) {
      train_job_["ttlSecondsAfterFinished"] = *job_.ttl_seconds_after_finished;
    }
    AddSuccess();
    constexpr char kPath[] = "spec.runPolicy.cleanPodPolicy";
    const std::string clean = TextField(RunPolicy(), "cleanPodPolicy");
    if (clean == "All") {
      Remark(kPath,
             "All has no counterpart: pods that have ended stay, with their logs, until the TrainJob is deleted; "
             "ttlSecondsAfterFinished deletes it");
    } else if (clean == "None") {
      Remark(kPath,
             "None has no counterpart: pods that still run when the TrainJob ends are ended; those that have "
             "ended stay");
    }
  }

  // Sets which pods must succeed. In v1, cleanPodPolicy decides whether the other pods run on after that.
  void AddSuccess() {
    if (job_.AllReplicas() < 2 || (!plan_.has_master && !plan_.elastic)) return;
    const std::string path = plan_.has_master ? ReplicaPath(ReplicaType::kMaster) : "spec.elasticPolicy";
    const char* rule = plan_.has_master ? "once its Master has" : "once one Worker has";
    if (job_.clean == CleanPodPolicy::kNone) {
      Remark(path, fmt::format("v1 succeeds {}, and leaves the other pods running; the TrainJob succeeds once all its "
                               "nodes have",
                               rule));
      return;
    }
    const Json by_master = {{"succeededIndexes", "0"}}, by_any = {{"succeededCount", 1}};
    job_template_["spec"]["successPolicy"]["rules"] = Json::array({plan_.has_master ? by_master : by_any});
    Remark(path, fmt::format("v1 succeeds {}, and ends the other pods: the Job has a successPolicy, which Kubernetes "
                             "1.31 and later serve",
                             rule));
  }

  void AddManager() {
    const std::string manager = TextField(RunPolicy(), "managedBy");
    if (manager == kMultiKueue) {
      train_job_["managedBy"] = manager;
    } else if (FindField(RunPolicy(), "managedBy") != nullptr && manager != kManagedByTrainingOperator) {
      Remark("spec.runPolicy.managedBy",
             fmt::format("{} is left out: a TrainJob is Muster's, or {}'s", Quoted(manager), kMultiKueue));
    }
  }

  Json Metadata() const {
    Json metadata = {{"name", job_.meta.name}};
    PutText(metadata, "namespace", job_.meta.ns);
    return metadata;
  }

  // Both objects, after a check that they can be read and planned.
  StatusOr<ConvertedJob> Checked() {
    Json annotations = job_.meta.annotations;
    for (const char* left_out : {kAppliedAnnotation, kRestartAnnotation}) annotations.erase(left_out);
    ConvertedJob converted;
    converted.runtime = {{"apiVersion", kTrainerApi},
                         {"kind", "TrainingRuntime"},
                         {"metadata", Metadata()},
                         {"spec", std::move(runtime_)}};
    converted.runtime["metadata"]["labels"][kFrameworkLabel] = "torch";
    converted.train_job = {
        {"apiVersion", kTrainerApi}, {"kind", "TrainJob"}, {"metadata", Metadata()}, {"spec", std::move(train_job_)}};
    if (!job_.meta.labels.empty()) converted.train_job["metadata"]["labels"] = job_.meta.labels;
    if (!annotations.empty()) converted.train_job["metadata"]["annotations"] = std::move(annotations);
    converted.remarks = std::move(remarks_);
    const auto train_job = ReadTrainJob(converted.train_job);
    const auto runtime = ReadRuntime(converted.runtime);
    MUSTER_RETURN_IF_ERROR(train_job.status());
    MUSTER_RETURN_IF_ERROR(Annotate(runtime.status(), "spec: as a runtime"));
    MUSTER_RETURN_IF_ERROR(Annotate(PlanTrainJob(*train_job, *runtime, {}).status(), "spec: as a TrainJob"));
    return converted;
  }

  const Json& object_;
  const PyTorchJob& job_;
  const UnknownFields& unknown_;
  const ConvertOptions& options_;
  PyTorchPlan plan_;
  ConvertedPods pods_;
  std::optional<int> own_restarts_;
  Json train_job_, runtime_;     // the spec of each
  Json job_set_, job_template_;  // template.spec of the runtime, and the template of its job
  std::vector<std::string> remarks_;
};

}  // namespace

StatusOr<ConvertedJob> ConvertPyTorchJob(const Json& object, const ConvertOptions& options) {
  UnknownFields unknown;
  MUSTER_ASSIGN_OR_RETURN(const PyTorchJob job, ReadPyTorchJob(object, &unknown));
  if (job.replicas.empty()) {
    return absl::InvalidArgumentError("spec.pytorchReplicaSpecs: it is empty; it needs Master, Worker, or both");
  }
  return Converter(object, job, unknown, options).Make();
}

}  // namespace muster::controller

// SPDX-License-Identifier: Apache-2.0
#include "controller/plan/train_job_plan.h"

#include <algorithm>
#include <set>

#include "base/quoted.h"
#include "base/text.h"
#include "controller/api/fields.h"
#include "controller/api/lenient.h"
#include "controller/api/limits.h"
#include "controller/api/reasons.h"
#include "controller/plan/agent.h"
#include "controller/plan/choice.h"
#include "controller/plan/elastic.h"
#include "controller/plan/frameworks/framework.h"
#include "controller/plan/initializers.h"
#include "controller/plan/job_object.h"
#include "controller/plan/names.h"
#include "controller/plan/native_gang.h"
#include "controller/plan/node_count.h"
#include "controller/plan/patches.h"
#include "controller/plan/pod_fields.h"
#include "controller/plan/pod_group.h"
#include "controller/plan/pod_rules.h"
#include "controller/plan/resources.h"
#include "controller/plan/restart_policy.h"
#include "controller/plan/sizes.h"
#include "controller/plan/token.h"
#include "controller/plan/trainer_status.h"
#include "controller/plan/volume_claims.h"

namespace muster::controller {
namespace {

constexpr int64_t kKeysBytes = 2048;  // of the labels and annotations in which the replicas of a Job differ
constexpr int kNoProgressLimit = 3;   // restarts in a row, where a runtime restarts after any failure

class Planner {
 public:
  Planner(const TrainJob& job, const Runtime& runtime, const PlanOptions& options)
      : job_(job), runtime_(runtime), options_(options), draft_{job, runtime} {}

  StatusOr<TrainJobPlan> Make() {
    MUSTER_RETURN_IF_ERROR(CheckServed());
    MUSTER_RETURN_IF_ERROR(ReadNames());
    MUSTER_ASSIGN_OR_RETURN(PatchedRuntime patched, ApplyPatches(job_, runtime_));
    draft_.jobs = std::move(patched.jobs);
    for (ReplicatedJob& of : draft_.jobs) {
      if (of.step != Step::kOther) of.replicas = 1;
    }
    SettleSteps(&draft_);
    MUSTER_RETURN_IF_ERROR(CheckReplicas());
    MUSTER_RETURN_IF_ERROR(CheckTemplates(patched.metadata));
    MUSTER_RETURN_IF_ERROR(ApplyInitializers(job_, &draft_.jobs));
    MUSTER_RETURN_IF_ERROR(OrderJobs(job_, runtime_, &draft_.jobs));
    MUSTER_ASSIGN_OR_RETURN(draft_.nodes, ReadNodeCount(job_, runtime_));
    MUSTER_ASSIGN_OR_RETURN(draft_.native_gang, WantsNativeGang(job_, runtime_));
    MUSTER_RETURN_IF_ERROR(OverrideTrainers());
    MUSTER_RETURN_IF_ERROR(AddFramework(&draft_));
    for (const ReplicatedJob& of : draft_.jobs) draft_.pods.try_emplace(of.name, PodsOf(of));
    MUSTER_RETURN_IF_ERROR(CheckPods());
    MUSTER_RETURN_IF_ERROR(CheckCoordinator());
    MUSTER_RETURN_IF_ERROR(AddVolumeClaims(&draft_));
    for (const ReplicatedJob& of : draft_.jobs) {
      MUSTER_ASSIGN_OR_RETURN(restart_[of.name], ReadRestartPolicy(runtime_, of));
    }
    MUSTER_RETURN_IF_ERROR(PlanAgents());
    MUSTER_RETURN_IF_ERROR(ApplyRestartPolicies());
    if (options_.status_server) AddStatusServer(*options_.status_server, &draft_);
    MUSTER_RETURN_IF_ERROR(AddPodGroup(patched.metadata, &draft_));
    MUSTER_ASSIGN_OR_RETURN(gang_, AddNativeGang(&draft_));
    plan_.subdomain = draft_.subdomain;
    plan_.active_deadline_seconds = runtime_.active_deadline_seconds;
    plan_.ttl_seconds = runtime_.train_job_ttl_seconds;
    plan_.success = runtime_.success;
    AddFailurePolicy();
    plan_.notices = std::move(draft_.notices);
    const JobFrame frame{job_, runtime_, draft_.jobs, draft_.subdomain, std::move(patched.metadata), options_.version};
    if (runtime_.dns_hostnames) plan_.service = MakeService(frame);
    MUSTER_RETURN_IF_ERROR(AddObjects(frame));
    MUSTER_RETURN_IF_ERROR(AddJobs(frame));
    return std::move(plan_);
  }

 private:
  Status CheckServed() {
    if (!runtime_.dns_hostnames && runtime_.ml_policy.framework != Framework::kPlain) {
      return absl::InvalidArgumentError(
          fmt::format("runtime '{}': spec.template.spec.network.enableDNSHostnames: false, and the pods of mlPolicy's "
                      "framework find each other by their host names; leave it out",
                      runtime_.meta.name));
    }
    return absl::OkStatus();
  }

  void AddFailurePolicy() {
    if (!runtime_.failure) return;
    plan_.failure_rules = runtime_.failure->rules;
    plan_.waits_for_old_pods = runtime_.failure->restart_strategy == "BlockingRecreate";
    if (runtime_.failure->restart_strategy != "InPlaceRestart") return;
    for (const auto& [name, injection] : injections_) {
      if (injection.done) return;
    }
    draft_.notices.push_back(
        {reason::kRestartStrategyIgnored,
         fmt::format("runtime '{}': spec.template.spec.failurePolicy.restartStrategy: InPlaceRestart needs the agent, "
                     "and no pod has it: the whole step starts again",
                     runtime_.meta.name)});
  }

  Status ReadNames() {
    if (!IsLabel(job_.meta.name)) {
      return absl::InvalidArgumentError(fmt::format(
          "metadata.name: {} is not a DNS label: small letters, digits and '-', a letter first, no '-' last, 63 "
          "characters at most",
          Quoted(job_.meta.name)));
    }
    draft_.subdomain = runtime_.subdomain.empty() ? job_.meta.name : runtime_.subdomain;
    return absl::OkStatus();
  }

  Status CheckReplicas() const {
    int64_t all = 0;
    for (const ReplicatedJob& of : draft_.jobs) all += of.replicas;
    if (all <= kMostMade) return absl::OkStatus();
    return absl::InvalidArgumentError(fmt::format(
        "runtime '{}': spec.template.spec.replicatedJobs: their replicas are {} Jobs together, and {} are the "
        "most; give one Job more pods instead (parallelism)",
        runtime_.meta.name, all, kMostMade));
  }

  // The initializers' pods, one each, are not counted.
  Status CheckPods() const {
    int64_t all = 0;
    for (const ReplicatedJob& of : draft_.jobs) {
      if (IsOfNodes(of) || of.step == Step::kOther) all += int64_t{of.replicas} * draft_.pods.at(of.name);
    }
    if (all <= kMostPods) return absl::OkStatus();
    return absl::InvalidArgumentError(
        fmt::format("runtime '{}': spec.template.spec.replicatedJobs: their Jobs have {} pods together, and {} are the "
                    "most; use fewer nodes, replicas, or a smaller parallelism",
                    runtime_.meta.name, all, kMostPods));
  }

  // What the job itself adds to a template of `of`.
  int64_t AddedBytes(const ReplicatedJob& of) const {
    const auto of_initializer = [](const auto& given) { return given ? BytesOf(given->env) : 0; };
    if (of.step == Step::kDatasetInitializer) return of_initializer(job_.dataset);
    if (of.step == Step::kModelInitializer) return of_initializer(job_.model);
    if (!IsOfNodes(of) || !job_.trainer) return 0;
    int64_t bytes = BytesOf(job_.trainer->env) + BytesOf(job_.trainer->resources_per_node);
    for (const auto* words : {&job_.trainer->command, &job_.trainer->args}) {
      for (const std::string& word : words->value_or(std::vector<std::string>())) {
        bytes += static_cast<int64_t>(word.size());
      }
    }
    return bytes;
  }

  // Before the parts are put together: a job or a patch of a megabyte may go into each of a hundred templates.
  Status CheckTemplates(const Json& shared_metadata) {
    shared_bytes_ = BytesOf(shared_metadata);
    int64_t bytes = 0;
    for (const ReplicatedJob& of : draft_.jobs) {
      bytes += BytesOf(of.job_template) + 2 * shared_bytes_ + AddedBytes(of);
    }
    return CheckPlanBytes(bytes);
  }

  Status CheckCoordinator() const {
    for (const ReplicatedJob& of : draft_.jobs) {
      if (of.name != TextField(runtime_.coordinator, "replicatedJob")) continue;
      const std::pair<const char*, int> indexes[] = {{"jobIndex", of.replicas}, {"podIndex", draft_.pods.at(of.name)}};
      for (const auto& [field, count] : indexes) {
        const Json* index = FindField(runtime_.coordinator, field);
        if (index == nullptr || *index < count) continue;
        return absl::InvalidArgumentError(fmt::format(
            "runtime '{}': spec.template.spec.coordinator.{}: {} is too large: job '{}' has {}, counted from 0",
            runtime_.meta.name, field, WriteJson(*index), of.name, count));
      }
    }
    return absl::OkStatus();
  }

  // Puts spec.trainer into the containers `node` of the trainer step and of MPI's workers.
  Status OverrideTrainers() {
    if (job_.trainer) {
      MUSTER_RETURN_IF_ERROR(CheckReservedNames(runtime_.ml_policy.framework, "spec.trainer.env", job_.trainer->env));
      if (FirstTrainer(draft_) == nullptr) {
        draft_.notices.push_back({reason::kTrainerIgnored,
                                  fmt::format("spec.trainer changes nothing: no job of runtime '{}' has the label {}: "
                                              "trainer",
                                              runtime_.meta.name, kAncestorLabel)});
      }
    }
    for (ReplicatedJob& of : draft_.jobs) {
      if (IsOfNodes(of)) MUSTER_RETURN_IF_ERROR(OverrideTrainer(&of));
    }
    return absl::OkStatus();
  }

  bool IsOfNodes(const ReplicatedJob& of) const { return of.step == Step::kTrainer || of.name == draft_.workers; }

  Status PlanAgents() {
    MUSTER_ASSIGN_OR_RETURN(const bool wants_agent, WantsAgent(job_, runtime_));
    MUSTER_ASSIGN_OR_RETURN(const std::string_view standby,
                            ChoiceOf(job_, runtime_, kStandbyAnnotation, "auto", "off"));
    ReplicatedJob* first = FirstTrainer(draft_);
    if (first == nullptr) {
      plan_.max_restarts = runtime_.failure ? runtime_.failure->max_restarts : 0;
      return absl::OkStatus();
    }
    MUSTER_RETURN_IF_ERROR(ReadBudget(first, wants_agent));
    if (!wants_agent) return absl::OkStatus();
    bool asks_for_token = false, restarts_for_any = false;
    for (ReplicatedJob& of : draft_.jobs) {
      const auto found = draft_.agents.find(of.name);
      if (of.step != Step::kTrainer && found == draft_.agents.end()) continue;
      // No torchrun runs in the pods of a framework that uses the agent in its own way.
      AgentUse use = found == draft_.agents.end() ? AgentUse{.standby = std::string(standby)} : found->second;
      use.job = draft_.job.meta.name;
      RestartPolicy& policy = restart_[of.name];
      const bool for_any = policy == RestartPolicy::kOwn && AnyFailureRestarts();
      if (for_any) use.no_progress_limit = kNoProgressLimit;
      MUSTER_ASSIGN_OR_RETURN(injections_[of.name],
                              InjectAgent(runtime_, options_, use, plan_.max_restarts,
                                          for_any ? RestartPolicy::kOnFailure : policy, &of, &draft_.notices));
      if (for_any && injections_[of.name].done) {
        policy = RestartPolicy::kOnFailure;
        restarts_for_any = true;
      }
      if (draft_.nodes.elastic && injections_[of.name].done) {
        SetNodes(draft_.nodes.pods, &PodTemplate(of.job_template), TrainerContainer(of));
      }
      if (!draft_.agents_meet || !injections_[of.name].done || HasOwnToken(*TrainerContainer(of))) continue;
      MountToken(TokenSecretName(job_.meta), &PodSpec(of.job_template), TrainerContainer(of));
      asks_for_token = true;
    }
    if (asks_for_token) draft_.objects.push_back(TokenSecret(job_.meta));
    if (restarts_for_any) NoteAnyFailureRestarts();
    return absl::OkStatus();
  }

  // JobSet restarts after any failure. A runtime that gives a number of restarts and no rules asks for the same.
  bool AnyFailureRestarts() const {
    return runtime_.failure && runtime_.failure->max_restarts > 0 && runtime_.failure->rules.empty();
  }

  void NoteAnyFailureRestarts() {
    draft_.notices.push_back(
        {reason::kAnyFailureRestarts,
         fmt::format(
             "runtime '{}': spec.template.spec.failurePolicy.maxRestarts has no rules: after any exit code, also "
             "1-127, the training starts again, until its {} are used up or {} in a row bring no progress; "
             "annotate the job's template with {}: exit-code if these codes are to fail the job at once",
             runtime_.meta.name, Counted(plan_.max_restarts, "restart"), kNoProgressLimit, kRestartPolicyAnnotation)});
  }

  Status ApplyRestartPolicies() {
    for (ReplicatedJob& of : draft_.jobs) {
      RestartPolicy& policy = restart_[of.name];
      const auto injection = injections_.find(of.name);
      const bool agent = injection != injections_.end() && injection->second.done;
      if (!agent || policy == RestartPolicy::kNever) {
        MUSTER_RETURN_IF_ERROR(ApplyRestartPolicy(runtime_, policy, agent, &of));
      }
      if (agent && policy == RestartPolicy::kOwn) policy = RestartPolicy::kExitCode;
    }
    return absl::OkStatus();
  }

  Status OverrideTrainer(ReplicatedJob* of) {
    Json* container = TrainerContainer(*of);
    if (container == nullptr) {
      return absl::InvalidArgumentError(fmt::format(
          "runtime '{}': job '{}' must contain the required container for the ancestor: trainer: its name is "
          "{}; the job has: {}",
          runtime_.meta.name, of->name, kTrainerContainer, NamesIn(PodSpec(of->job_template), "containers")));
    }
    if (!job_.trainer) return absl::OkStatus();
    const Trainer& trainer = *job_.trainer;
    if (!trainer.image.empty()) (*container)["image"] = trainer.image;
    if (of->step == Step::kTrainer) {
      if (trainer.command) (*container)["command"] = *trainer.command;
      if (trainer.args) (*container)["args"] = *trainer.args;
    }
    UpsertEnvLast(trainer.env, container);
    if (trainer.resources_per_node.is_object()) {
      (*container)["resources"] = MergedResources(PartOf(*container, "resources"), trainer.resources_per_node);
    }
    return absl::OkStatus();
  }

  // The container's PET_MAX_RESTARTS, else maxRestarts of elasticPolicy or failurePolicy, else the agent's default.
  Status ReadBudget(ReplicatedJob* first, bool wants_agent) {
    MUSTER_ASSIGN_OR_RETURN(const auto own, OwnRestarts(first->name, *TrainerContainer(*first)));
    MUSTER_ASSIGN_OR_RETURN(const auto elastic, ElasticRestarts(runtime_));
    if (own) {
      plan_.max_restarts = *own;
    } else if (elastic) {
      plan_.max_restarts = *elastic;
      UpsertEnv(EnvValue(kMaxRestartsVariable, fmt::format("{}", *elastic)), TrainerContainer(*first));
    } else if (runtime_.failure) {
      plan_.max_restarts = runtime_.failure->max_restarts;
    } else if (wants_agent && CommandIsKnown(*TrainerContainer(*first))) {
      plan_.max_restarts = kDefaultMaxRestarts;
      plan_.agents_only = true;
    }
    return absl::OkStatus();
  }

  int PodsOf(const ReplicatedJob& of) const {
    const bool counted =
        of.step == Step::kTrainer && (runtime_.ml_policy.given || (job_.trainer && job_.trainer->num_nodes));
    if (counted) return draft_.nodes.pods;
    const Json* parallelism = FindField(of.job_template["spec"], "parallelism");
    return parallelism == nullptr ? 1 : std::max(1, parallelism->get<int>());
  }

  Status AddObjects(const JobFrame& frame) {
    MUSTER_RETURN_IF_ERROR(CheckPlanBytes(shared_bytes_ * static_cast<int64_t>(draft_.objects.size())));
    for (PlannedObject& planned : draft_.objects) {
      MakeOwned(frame, &planned.object);
      const int64_t bytes = BytesOf(planned.object);
      MUSTER_RETURN_IF_ERROR(CheckObjectBytes(
          fmt::format("{} {}", TextField(planned.object, "kind"), TextField(planned.object["metadata"], "name")),
          bytes));
      made_bytes_ += bytes;
      plan_.objects.push_back(std::move(planned));
    }
    return absl::OkStatus();
  }

  Status AddJobs(const JobFrame& frame) {
    int all = 0;
    std::map<std::string, int> of_group;
    for (const ReplicatedJob& of : draft_.jobs) {
      PlannedJob planned = WithoutIndex(of);
      const Json common = MakeJobs(frame, of, planned.pods);
      if (of.replicas > 0) {
        MUSTER_RETURN_IF_ERROR(
            CheckPodRules(common["spec"]["template"], PodOwner::kJob,
                          fmt::format("Job '{}': spec.template", JobName(job_.meta.name, of.name, 0))));
      }
      planned.common = PackedJson(common);
      const int64_t bytes = static_cast<int64_t>(planned.common.bytes()) + kKeysBytes;
      MUSTER_RETURN_IF_ERROR(CheckObjectBytes(fmt::format("Job {}", JobName(job_.meta.name, of.name, 0)), bytes));
      MUSTER_RETURN_IF_ERROR(CheckMadeBytes(
          fmt::format("runtime '{}': spec.template.spec.replicatedJobs: job '{}'", runtime_.meta.name, of.name),
          of.replicas, bytes, made_bytes_));
      made_bytes_ += of.replicas * bytes;
      for (planned.index = 0; planned.index < of.replicas; ++planned.index) {
        planned.name = JobName(job_.meta.name, of.name, planned.index);
        planned.global_index = all++;
        planned.group_index = of_group[of.group]++;
        plan_.jobs.push_back(planned);
      }
    }
    return absl::OkStatus();
  }

  PlannedJob WithoutIndex(const ReplicatedJob& of) const {
    PlannedJob planned;
    planned.replicated_job = of.name;
    planned.step = of.step;
    planned.after = of.depends_on;
    planned.pods = draft_.pods.at(of.name);
    planned.scales = of.step == Step::kTrainer && Scales(draft_);
    planned.are_nodes = IsOfNodes(of);
    planned.in_gang = gang_.contains(of.name);
    planned.restart = restart_.at(of.name);
    if (const auto injection = injections_.find(of.name); injection != injections_.end()) {
      planned.agent = injection->second.done;
      planned.agent_port = injection->second.port;
      planned.budget_in_job = injection->second.budget_in_job;
    }
    return planned;
  }

  const TrainJob& job_;
  const Runtime& runtime_;
  const PlanOptions& options_;
  Draft draft_;
  TrainJobPlan plan_;
  int64_t shared_bytes_ = 0, made_bytes_ = 0;     // of the shared metadata, and of the objects so far
  std::map<std::string, RestartPolicy> restart_;  // by replicated job
  std::map<std::string, Injection> injections_;   // by replicated job
  std::set<std::string> gang_;                    // the replicated jobs in the gang of Kubernetes
};

}  // namespace

StatusOr<TrainJobPlan> PlanTrainJob(const TrainJob& job, const Runtime& runtime, const PlanOptions& options) {
  return Planner(job, runtime, options).Make();
}

}  // namespace muster::controller

#include "controller/plan/plan.h"

#include <algorithm>

#include "base/quoted.h"
#include "base/text.h"
#include "controller/api/fields.h"
#include "controller/plan/agent.h"
#include "controller/plan/environment.h"
#include "controller/plan/initializers.h"
#include "controller/plan/job_object.h"
#include "controller/plan/names.h"
#include "controller/plan/patches.h"
#include "controller/plan/pod_fields.h"
#include "controller/plan/resources.h"
#include "controller/plan/token.h"

namespace muster::controller {
namespace {

constexpr int64_t kMostJobs = 10'000;  // of one TrainJob

std::string_view FrameworkName(Framework framework) {
  switch (framework) {
    case Framework::kPlain:
      return "plain";
    case Framework::kTorch:
      return "torch";
    case Framework::kMpi:
      return "mpi";
    case Framework::kJax:
      return "jax";
    case Framework::kXgboost:
      return "xgboost";
    case Framework::kFlux:
      return "flux";
  }
  return "unknown";
}

// Fills one plan, step by step.
class Planner {
 public:
  Planner(const TrainJob& job, const Runtime& runtime, const PlanOptions& options)
      : job_(job), runtime_(runtime), options_(options) {}

  StatusOr<Plan> Make() {
    MUSTER_RETURN_IF_ERROR(CheckServed());
    MUSTER_RETURN_IF_ERROR(ReadNames());
    MUSTER_ASSIGN_OR_RETURN(PatchedRuntime patched, ApplyPatches(job_, runtime_));
    jobs_ = std::move(patched.jobs);
    for (ReplicatedJob& of : jobs_) {
      if (of.step != Step::kOther) of.replicas = 1;
    }
    MUSTER_RETURN_IF_ERROR(CheckReplicas());
    MUSTER_RETURN_IF_ERROR(ApplyInitializers(job_, &jobs_));
    MUSTER_RETURN_IF_ERROR(OrderJobs(job_, runtime_, &jobs_));
    MUSTER_RETURN_IF_ERROR(PlanTrainer());
    const JobFrame frame{job_, runtime_, jobs_, plan_.subdomain, std::move(patched.metadata), options_.version};
    plan_.service = MakeService(frame);
    if (asks_for_token_) plan_.token = MakeSecret(frame, TokenSecretName(job_));
    plan_.success = runtime_.success;
    for (const ReplicatedJob& of : jobs_) AddJobs(frame, of);
    return std::move(plan_);
  }

 private:
  Status CheckServed() {
    const Framework framework = runtime_.ml_policy.framework;
    if (framework != Framework::kPlain && framework != Framework::kTorch) {
      return absl::InvalidArgumentError(
          fmt::format("runtime '{}': spec.mlPolicy.{}: this framework is not served yet; use a runtime with "
                      "mlPolicy.torch, or without a framework",
                      runtime_.meta.name, FrameworkName(framework)));
    }
    if (framework == Framework::kTorch && job_.trainer && job_.trainer->command &&
        *job_.trainer->command == std::vector<std::string>{"tune", "run"}) {
      return absl::InvalidArgumentError(
          "spec.trainer.command: 'tune run' asks for a recipe of torchtune, which is not served yet; give the whole "
          "command with its recipe and config");
    }
    if (!runtime_.volume_claim_policies.is_null()) {
      return absl::InvalidArgumentError(
          fmt::format("runtime '{}': spec.template.spec.volumeClaimPolicies: claims are not made yet; make a "
                      "PersistentVolumeClaim and name it in the volumes of the pods",
                      runtime_.meta.name));
    }
    if (!runtime_.pod_group_policy.is_null()) {
      plan_.notices.push_back(
          {"PodGroupPolicyIgnored", fmt::format("runtime '{}': spec.podGroupPolicy is not served yet: the pods are not "
                                                "scheduled as a group",
                                                runtime_.meta.name)});
    }
    const Json* elastic = FindField(runtime_.ml_policy.policy, "elasticPolicy");
    if (elastic != nullptr && FindField(*elastic, "metrics") != nullptr) {
      plan_.notices.push_back({"ElasticMetricsIgnored",
                               fmt::format("runtime '{}': spec.mlPolicy.torch.elasticPolicy.metrics is not served yet: "
                                           "no HorizontalPodAutoscaler is made",
                                           runtime_.meta.name)});
    }
    return absl::OkStatus();
  }

  Status ReadNames() {
    if (!IsLabel(job_.meta.name)) {
      return absl::InvalidArgumentError(fmt::format(
          "metadata.name: {} is no DNS label: small letters, digits and '-', a letter first, no '-' last, 63 "
          "characters at most",
          Quoted(job_.meta.name)));
    }
    plan_.subdomain = runtime_.subdomain.empty() ? job_.meta.name : runtime_.subdomain;
    return absl::OkStatus();
  }

  Status CheckReplicas() const {
    int64_t all = 0;
    for (const ReplicatedJob& of : jobs_) all += of.replicas;
    if (all <= kMostJobs) return absl::OkStatus();
    return absl::InvalidArgumentError(fmt::format(
        "runtime '{}': spec.template.spec.replicatedJobs: their replicas are {} Jobs together, and {} are the "
        "most; give one Job more pods instead (parallelism)",
        runtime_.meta.name, all, kMostJobs));
  }

  Status PlanTrainer() {
    MUSTER_ASSIGN_OR_RETURN(nodes_, ReadNodeCount(job_, runtime_));
    MUSTER_ASSIGN_OR_RETURN(const bool wants_agent, WantsAgent(job_, runtime_));
    const bool torch = runtime_.ml_policy.framework == Framework::kTorch;
    if (torch && job_.trainer) MUSTER_RETURN_IF_ERROR(CheckReservedNames("spec.trainer.env", job_.trainer->env));
    const auto first =
        std::find_if(jobs_.begin(), jobs_.end(), [](const auto& of) { return of.step == Step::kTrainer; });
    if (first == jobs_.end()) {
      if (job_.trainer) {
        plan_.notices.push_back(
            {"TrainerIgnored", fmt::format("spec.trainer changes nothing: no job of runtime '{}' has the label {}: "
                                           "trainer",
                                           runtime_.meta.name, kAncestorLabel)});
      }
      plan_.max_restarts = runtime_.failure ? runtime_.failure->max_restarts : 0;
      return absl::OkStatus();
    }
    for (auto of = first; of != jobs_.end(); ++of) {
      if (of->step != Step::kTrainer) continue;
      MUSTER_RETURN_IF_ERROR(OverrideTrainer(&*of));
    }
    TorchFacts facts;
    if (torch) {
      MUSTER_ASSIGN_OR_RETURN(facts, FactsFor(*first));
      for (auto of = first; of != jobs_.end(); ++of) {
        if (of->step == Step::kTrainer) AddTorchEnvironment(facts, Container(&*of));
      }
      MUSTER_RETURN_IF_ERROR(InjectIntoTargets(facts, runtime_, &jobs_));
    }
    MUSTER_RETURN_IF_ERROR(ReadBudget(&*first, wants_agent));
    for (auto of = first; of != jobs_.end(); ++of) {
      if (of->step != Step::kTrainer || !wants_agent) continue;
      MUSTER_ASSIGN_OR_RETURN(injections_[of->name],
                              InjectAgent(runtime_, options_, plan_.max_restarts, &*of, &plan_.notices));
      // Agents of torchrun meet at a port of rank 0's pod, unless there is one pod alone.
      const bool meets = torch && injections_[of->name].done && PodsOf(*of) > 1;
      if (!meets || HasOwnToken(*Container(&*of))) continue;
      MountToken(TokenSecretName(job_), &PodSpec(of->job_template), Container(&*of));
      asks_for_token_ = true;
    }
    return absl::OkStatus();
  }

  static Json* Container(ReplicatedJob* of) {
    return FindNamed(PodSpec(of->job_template), "containers", kTrainerContainer);
  }

  Status OverrideTrainer(ReplicatedJob* of) {
    Json* container = Container(of);
    if (container == nullptr) {
      return absl::InvalidArgumentError(fmt::format(
          "runtime '{}': job '{}' must contain the required container for the ancestor: trainer: its name is "
          "{}; the job has: {}",
          runtime_.meta.name, of->name, kTrainerContainer, NamesIn(PodSpec(of->job_template), "containers")));
    }
    if (!job_.trainer) return absl::OkStatus();
    const Trainer& trainer = *job_.trainer;
    if (!trainer.image.empty()) (*container)["image"] = trainer.image;
    if (trainer.command) (*container)["command"] = *trainer.command;
    if (trainer.args) (*container)["args"] = *trainer.args;
    for (const Json& variable : trainer.env) UpsertEnv(variable, container);
    if (trainer.resources_per_node.is_object()) {
      const Json* resources = FindField(*container, "resources");
      (*container)["resources"] =
          MergedResources(resources == nullptr ? Json() : *resources, trainer.resources_per_node);
    }
    return absl::OkStatus();
  }

  StatusOr<TorchFacts> FactsFor(ReplicatedJob& first) const {
    TorchFacts facts;
    facts.nodes = nodes_.Text();
    facts.elastic = nodes_.elastic;
    const Json* resources = FindField(*Container(&first), "resources");
    MUSTER_ASSIGN_OR_RETURN(facts.processes,
                            ProcessesPerNode(job_, runtime_, resources == nullptr ? Json() : *resources));
    facts.master = fmt::format("{}-0.{}", JobName(job_.meta.name, first.name, 0), plan_.subdomain);
    facts.job_id = job_.meta.uid.empty() ? job_.meta.name : job_.meta.uid;
    return facts;
  }

  // The first that names one: the container's own PET_MAX_RESTARTS, the elasticPolicy, the failurePolicy.
  Status ReadBudget(ReplicatedJob* first, bool wants_agent) {
    MUSTER_ASSIGN_OR_RETURN(const auto own, OwnRestarts(first->name, *Container(first)));
    MUSTER_ASSIGN_OR_RETURN(const auto elastic, ElasticRestarts(runtime_));
    if (own) {
      plan_.max_restarts = *own;
    } else if (elastic) {
      plan_.max_restarts = *elastic;
      UpsertEnv(EnvValue(kMaxRestartsVariable, fmt::format("{}", *elastic)), Container(first));
    } else if (runtime_.failure) {
      plan_.max_restarts = runtime_.failure->max_restarts;
    } else if (wants_agent && CommandIsKnown(*Container(first))) {
      plan_.max_restarts = kDefaultMaxRestarts;
    }
    return absl::OkStatus();
  }

  int PodsOf(const ReplicatedJob& of) const {
    const bool counted =
        of.step == Step::kTrainer && (runtime_.ml_policy.given || (job_.trainer && job_.trainer->num_nodes));
    if (counted) return nodes_.pods;
    const Json* parallelism = FindField(of.job_template["spec"], "parallelism");
    return parallelism == nullptr ? 1 : std::max(1, parallelism->get<int>());
  }

  void AddJobs(const JobFrame& frame, const ReplicatedJob& of) {
    const auto injection = injections_.find(of.name);
    for (int index = 0; index < of.replicas; ++index) {
      PlannedJob planned;
      planned.name = JobName(job_.meta.name, of.name, index);
      planned.replicated_job = of.name;
      planned.index = index;
      planned.step = of.step;
      planned.after = of.depends_on;
      planned.pods = PodsOf(of);
      if (injection != injections_.end()) {
        planned.agent = injection->second.done;
        planned.budget_in_job = injection->second.budget_in_job;
      }
      planned.object = MakeJob(frame, of, index, planned.pods);
      plan_.jobs.push_back(std::move(planned));
    }
  }

  const TrainJob& job_;
  const Runtime& runtime_;
  const PlanOptions& options_;
  Plan plan_;
  std::vector<ReplicatedJob> jobs_;
  NodeCount nodes_;
  bool asks_for_token_ = false;
  std::map<std::string, Injection> injections_;  // by replicated job
};

}  // namespace

StatusOr<Plan> MakePlan(const TrainJob& job, const Runtime& runtime, const PlanOptions& options) {
  return Planner(job, runtime, options).Make();
}

}  // namespace muster::controller

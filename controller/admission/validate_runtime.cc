// SPDX-License-Identifier: Apache-2.0
#include "controller/admission/validate_runtime.h"

#include <algorithm>
#include <limits>

#include "base/quoted.h"
#include "base/text.h"
#include "controller/admission/meaning.h"
#include "controller/api/fields.h"
#include "controller/api/lenient.h"
#include "controller/api/limits.h"
#include "controller/plan/pod_fields.h"
#include "controller/plan/train_job_plan.h"

namespace muster::controller {
namespace {

constexpr char kClusterRuntimes[] = "clustertrainingruntimes";

struct StepRule {
  Step step;
  const char* ancestor;
  const char* container;
};
constexpr StepRule kSteps[] = {{Step::kTrainer, "trainer", kTrainerContainer},
                               {Step::kDatasetInitializer, "dataset-initializer", "dataset-initializer"},
                               {Step::kModelInitializer, "model-initializer", "model-initializer"}};

class Judge {
 public:
  Judge(const Runtime& runtime, Verdict* verdict) : runtime_(runtime), verdict_(verdict) {}

  void Run() {
    for (size_t i = 0; i < runtime_.jobs.size(); ++i) {
      CheckStep(i);
      CheckPods(i);
    }
    if (runtime_.coordinator.is_object()) CheckCoordinator();
  }

 private:
  static std::string PathOfJob(size_t index) { return PathOf("spec.template.spec.replicatedJobs", index); }
  void Refuse(std::string why) { verdict_->Refuse(kForbidden, std::move(why)); }

  void CheckStep(size_t index) {
    const ReplicatedJob& job = runtime_.jobs[index];
    const auto rule =
        std::find_if(std::begin(kSteps), std::end(kSteps), [&](const StepRule& of) { return of.step == job.step; });
    if (rule == std::end(kSteps)) return;
    if (job.replicas != 1) {
      Refuse(fmt::format("{}.replicas: {}: always must be 1; the number of nodes is mlPolicy.numNodes",
                         PathOfJob(index), job.replicas));
    }
    const Json& pod = PodSpec(job.job_template);
    if (FindNamed(pod, "containers", rule->container) == nullptr) {
      Refuse(
          fmt::format("{}.template.spec.template.spec.containers: must contain the required container for the "
                      "ancestor: {}; name it {}; the job has: {}",
                      PathOfJob(index), rule->ancestor, rule->container, NamesIn(pod, "containers")));
    }
  }

  static int64_t Count(const ReplicatedJob& job, const char* name) {
    const Json* number = FindField(job.job_template["spec"], name);
    return number == nullptr ? 1 : WholeNumber(*number).value_or(1);
  }

  void CheckPods(size_t index) {
    const ReplicatedJob& job = runtime_.jobs[index];
    const int64_t pods = job.replicas * Count(job, "parallelism");
    if (pods > std::numeric_limits<int32_t>::max()) {
      Refuse(fmt::format("{}: the product of replicas and parallelism must not exceed 2147483647; it is {}",
                         PathOfJob(index), pods));
    } else if (pods > kMostPods) {
      Refuse(fmt::format("{}: replicas and parallelism are {} pods together, and {} are the most; use fewer of both",
                         PathOfJob(index), pods, kMostPods));
    } else if (job.replicas > kMostMade) {
      Refuse(fmt::format("{}.replicas: {} is more than {}, the most Jobs of one TrainJob; use a larger parallelism",
                         PathOfJob(index), job.replicas, kMostMade));
    }
  }

  void CheckCoordinator() {
    constexpr char kPath[] = "spec.template.spec.coordinator";
    const std::string name = TextField(runtime_.coordinator, "replicatedJob");
    const auto job = std::find_if(runtime_.jobs.begin(), runtime_.jobs.end(),
                                  [&](const ReplicatedJob& of) { return of.name == name; });
    if (job == runtime_.jobs.end()) return;  // ReadRuntime() reports it
    const auto check = [&](const char* field, int64_t most, std::string_view of) {
      const Json* number = FindField(runtime_.coordinator, field);
      const int64_t index = number == nullptr ? 0 : WholeNumber(*number).value_or(0);
      if (index < most) return;
      Refuse(fmt::format("{}.{}: {} is invalid for replicatedJob {}, which has {} {}", kPath, field, index,
                         Quoted(name), most, of));
    };
    check("jobIndex", job->replicas, "replicas");
    if (TextField(job->job_template["spec"], "completionMode") == "NonIndexed") {
      Refuse(
          fmt::format("{}.replicatedJob: job for coordinator pod must be indexed completion mode; replicatedJob {} "
                      "is NonIndexed",
                      kPath, Quoted(name)));
    }
    // In the trainer step, the TrainJob decides the number of nodes.
    if (job->step != Step::kTrainer) check("podIndex", Count(*job, "completions"), "completions");
  }

  const Runtime& runtime_;
  Verdict* const verdict_;
};

std::string_view KindOf(const AdmissionRequest& request) {
  return request.resource == kClusterRuntimes ? "ClusterTrainingRuntime" : "TrainingRuntime";
}

}  // namespace

Verdict ValidateRuntime(const AdmissionRequest& request, const PlanOptions& options) {
  Verdict verdict;
  const bool created = request.operation == "CREATE";
  const bool changed = request.operation == "UPDATE" && !IsBeingDeleted(request.object) &&
                       !SameMeaning(FindField(request.object, "spec"), FindField(request.old_object, "spec"));
  if (!created && !changed) return verdict;
  const auto runtime = ReadRuntime(request.object);
  if (!runtime.ok()) {
    verdict.Refuse(kForbidden, std::string(Message(runtime.status())));
    return verdict;
  }
  JudgeRuntime(*runtime, &verdict);
  if (!verdict.refusals.empty()) return verdict;
  if (created && IsDeprecated(request.object)) {
    verdict.warnings.push_back(DeprecationOf(KindOf(request), runtime->meta.name));
  }
  TrainJob plain;
  plain.meta.name = "job";
  plain.runtime.kind = KindOf(request);
  plain.runtime.name = runtime->meta.name;
  if (const auto snapshot = MakeSnapshot(plain, request.object); !snapshot.ok()) {
    verdict.Refuse(kForbidden, std::string(Message(snapshot.status())));
    return verdict;
  }
  if (const auto plan = PlanTrainJob(plain, *runtime, options); !plan.ok()) {
    verdict.warnings.push_back(
        fmt::format("a TrainJob that adds nothing to this runtime would be refused: {}", Message(plan.status())));
  }
  return verdict;
}

void JudgeRuntime(const Runtime& runtime, Verdict* verdict) { Judge(runtime, verdict).Run(); }

bool IsValidated(const Json& runtime) {
  return TextField(PartOf(runtime, "metadata", "labels"), "trainer.kubeflow.org/webhook-validation") != "disabled";
}

bool IsProtected(const AdmissionRequest& request) {
  return request.operation == "DELETE" &&
         TextField(PartOf(request.old_object, "metadata", "labels"), kProtectedLabel) == "true";
}

bool UsesRuntime(const Json& train_job, const AdmissionRequest& request) {
  const RuntimeRef ref = RuntimeRefOf(train_job);
  if (ref.name != request.name || ref.kind != KindOf(request) || ref.api_group != kTrainerGroup) return false;
  return !IsBeingDeleted(train_job) && !ReadTrainJobStatus(PartOf(train_job, "status")).Finished();
}

Verdict RefuseDelete(const AdmissionRequest& request, std::string_view job) {
  Verdict verdict;
  const std::string user =
      job.empty() ? "a TrainJob (kubectl get trainjobs -A)" : fmt::format("TrainJob {}", Quoted(job));
  verdict.Refuse(kForbidden, fmt::format("{} {} has label {}: \"true\", and {} uses it; wait until that has ended, or "
                                         "take the label away",
                                         KindOf(request), Quoted(request.name), kProtectedLabel, user));
  return verdict;
}

}  // namespace muster::controller

// SPDX-License-Identifier: Apache-2.0
#include "controller/admission/validate_train_job.h"

#include <algorithm>
#include <optional>

#include "base/quoted.h"
#include "base/text.h"
#include "controller/admission/meaning.h"
#include "controller/admission/patch_rules.h"
#include "controller/api/lenient.h"
#include "controller/api/old_shape.h"
#include "controller/plan/elastic.h"
#include "controller/plan/native_gang.h"
#include "controller/plan/node_count.h"
#include "controller/plan/train_job_plan.h"

namespace muster::controller {
namespace {

// `train_job` in the newest shape, or unchanged if it cannot be converted.
Json Newest(const Json& train_job) {
  auto made = NewestShape(train_job);
  if (!made.ok()) return train_job;
  return std::move(made->object);
}

// spec.trainer without numNodes, and with numProcPerNode of the annotation if the field is absent.
Json TrainerOf(const Json& train_job) {
  Json trainer = MapField(PartOf(train_job, "spec"), "trainer");
  trainer.erase("numNodes");
  if (FindField(trainer, "numProcPerNode") == nullptr) {
    trainer["numProcPerNode"] = TextField(PartOf(train_job, "metadata", "annotations"), kNumProcAnnotation);
  }
  return trainer;
}

// The patches by manager, without their times.
Json PatchesOf(const Json& train_job) {
  Json by_manager = Json::object();
  for (const Json& patch : ListField(PartOf(train_job, "spec"), "runtimePatches")) {
    const Json* spec = FindField(patch, "trainingRuntimeSpec");
    if (spec != nullptr) by_manager[TextField(patch, "manager")] = *spec;
  }
  return by_manager;
}

// The changes of an UPDATE, by meaning. Both objects are in the newest shape.
struct Change {
  Json before, after;
  bool any = false, nodes = false, trainer = false, patches = false;

  explicit Change(const AdmissionRequest& request) : before(Newest(request.old_object)), after(Newest(request.object)) {
    if (IsBeingDeleted(after)) return;
    const Json old_trainer = TrainerOf(before), new_trainer = TrainerOf(after);
    trainer = !SameMeaning(&old_trainer, &new_trainer);
    any = trainer || !SameMeaning(FindField(before, "spec"), FindField(after, "spec"));
    nodes = !SameMeaning(&NumNodes(before), &NumNodes(after));
    const Json old_patches = PatchesOf(before), new_patches = PatchesOf(after);
    patches = !SameMeaning(&old_patches, &new_patches);
  }

  // Whether the plan may change.
  bool plan() const { return nodes || trainer || patches; }

  static const Json& NumNodes(const Json& train_job) { return PartOf(train_job, "spec", "trainer", "numNodes"); }
};

class Validator {
 public:
  Validator(const AdmissionRequest& request, const TrainJobFacts& facts, const PlanOptions& options)
      : request_(request), facts_(facts), options_(options) {}

  Verdict Create() {
    const auto job = ReadForm(request_.object);
    if (!job || job->managed_by != kManagedByMuster) return verdict_;
    const RuntimeRef& ref = job->runtime;
    const bool of_cluster = ref.kind == "ClusterTrainingRuntime";
    if (ref.api_group != kTrainerGroup || (!of_cluster && ref.kind != "TrainingRuntime")) {
      Refuse(kForbidden, fmt::format("spec.runtimeRef: unsupported runtime: {}.{}; use a ClusterTrainingRuntime or a "
                                     "TrainingRuntime of {}",
                                     ref.kind, ref.api_group, kTrainerGroup));
      return verdict_;
    }
    if (!facts_.known) {
      CheckManagers(*job, &verdict_);
      return verdict_;
    }
    if (facts_.runtime == nullptr) {
      Refuse(kForbidden,
             fmt::format("spec.runtimeRef: Invalid value: {}: specified {} must be created before the "
                         "TrainJob is created; `kubectl get {}` lists those that exist",
                         Quoted(ref.name), of_cluster ? "clusterTrainingRuntime" : "trainingRuntime",
                         of_cluster ? "clustertrainingruntimes" : fmt::format("trainingruntimes -n {}", request_.ns)));
      return verdict_;
    }
    if (IsDeprecated(*facts_.runtime)) {
      verdict_.warnings.push_back(DeprecationOf(fmt::format("Referenced {}", ref.kind), ref.name));
    }
    JudgePlan(*job, *facts_.runtime, true);
    return verdict_;
  }

  Verdict Update() {
    const Change change(request_);
    if (!change.any) return verdict_;
    const auto runtime = JudgingRuntime(change.after);
    JudgeFixed(change);
    if (change.nodes) JudgeNodes(change, runtime);
    if (ReadTrainJobStatus(PartOf(change.before, "status")).Finished()) return verdict_;
    if (change.patches) CheckPatchChange(change.before, change.after, &verdict_);
    if (!change.plan()) return verdict_;
    const auto job = ReadForm(change.after);
    const bool judge = job && job->managed_by == kManagedByMuster && runtime && verdict_.refusals.empty();
    if (judge) JudgePlan(*job, *runtime, change.patches);
    return verdict_;
  }

 private:
  void Refuse(int code, std::string why) { verdict_.Refuse(code, std::move(why)); }

  std::optional<TrainJob> ReadForm(const Json& object) {
    auto job = ReadTrainJob(object);
    if (job.ok()) return *std::move(job);
    Refuse(kInvalid, std::string(Message(job.status())));
    return std::nullopt;
  }

  // The runtime by which the job runs or will run: the snapshot's, else the current one. None: neither is known.
  std::optional<Json> JudgingRuntime(const Json& object) const {
    if (facts_.snapshot != nullptr) {
      TrainJob job;
      job.runtime = RuntimeRefOf(object);
      if (auto meta = ReadMeta(object); meta.ok()) job.meta = *std::move(meta);
      if (auto runtime = ReadSnapshot(job, *facts_.snapshot); runtime.ok()) return *std::move(runtime);
    }
    return facts_.runtime == nullptr ? std::nullopt : std::optional(*facts_.runtime);
  }

  void JudgePlan(const TrainJob& job, const Json& live, bool with_patches) {
    const auto runtime = ReadRuntime(live);
    const auto refuse = [&](const Status& why) { Refuse(kForbidden, std::string(Message(why))); };
    const std::string name = fmt::format("{} {}", job.runtime.kind, job.runtime.name);
    if (!runtime.ok()) return refuse(Annotate(runtime.status(), name));
    if (with_patches) JudgeNewJob(job, *runtime, &verdict_);
    const auto plan = PlanTrainJob(job, *runtime, options_);
    if (!plan.ok()) return refuse(plan.status());
    verdict_.asks = WorkloadIn(plan->objects);
    if (request_.operation != "CREATE") return;
    if (const auto snapshot = MakeSnapshot(job, live); !snapshot.ok()) return refuse(snapshot.status());
    for (const Notice& notice : plan->notices) verdict_.warnings.push_back(notice.message);
  }

  void RefuseFixed(std::string_view path, std::string_view what = "") {
    Refuse(kInvalid, fmt::format("{}: field is immutable{}; make another TrainJob for another value", path, what));
  }

  void JudgeFixed(const Change& change) {
    const Json &before = PartOf(change.before, "spec"), &after = PartOf(change.after, "spec");
    if (RuntimeRefOf(change.before) != RuntimeRefOf(change.after)) RefuseFixed("spec.runtimeRef");
    for (const std::string& field : Differing(FindField(before, "initializer"), FindField(after, "initializer"))) {
      RefuseFixed(fmt::format("spec.initializer.{}", field));
    }
    if (change.trainer) {
      const Json old_trainer = TrainerOf(change.before), new_trainer = TrainerOf(change.after);
      for (const std::string& field : Differing(&old_trainer, &new_trainer)) {
        RefuseFixed(fmt::format("spec.trainer.{}", field));
      }
    }
    if (ManagerOf(before) != ManagerOf(after)) RefuseFixed("spec.managedBy");
    if (!SameMeaning(FindField(before, "activeDeadlineSeconds"), FindField(after, "activeDeadlineSeconds"))) {
      RefuseFixed("spec.activeDeadlineSeconds");
    }
  }

  static std::string ManagerOf(const Json& spec) {
    std::string manager = TextField(spec, "managedBy");
    return manager.empty() ? kManagedByMuster : manager;
  }

  void JudgeNodes(const Change& change, const std::optional<Json>& runtime) {
    const std::string queue = TextField(PartOf(change.after, "metadata", "labels"), kQueueLabel);
    if (!queue.empty() && !IsSuspended(change.after)) {
      Refuse(kForbidden,
             fmt::format("spec.trainer.numNodes: queue {} of Kueue has admitted the job with the number of nodes that "
                         "it has, and would stop it and queue it anew; suspend it first (spec.suspend: true)",
                         Quoted(queue)));
      return;
    }
    if (IsSuspended(change.before) || IsSuspended(change.after) || !runtime) return;
    if (IsGang(change.after, *runtime)) {
      Refuse(kForbidden, fmt::format("spec.trainer.numNodes: Kubernetes refuses to change the number of pods of a gang "
                                     "that runs (annotation {}: native); suspend it first (spec.suspend: true)",
                                     kGangAnnotation));
      return;
    }
    if (IsElastic(*runtime)) return;
    RefuseFixed("spec.trainer.numNodes",
                " while the job runs, unless its runtime has mlPolicy.torch.elasticPolicy; suspend it first "
                "(spec.suspend: true)");
  }

  static bool IsGang(const Json& object, const Json& runtime) {
    TrainJob job;
    if (auto meta = ReadMeta(object); meta.ok()) job.meta = *std::move(meta);
    const auto read = ReadRuntime(runtime);
    return read.ok() && WantsNativeGang(job, *read).value_or(false);
  }

  static bool IsElastic(const Json& runtime) {
    const auto read = ReadRuntime(runtime);
    const auto count = read.ok() ? ReadNodeCount(TrainJob(), *read) : read.status();
    return count.ok() && count->elastic;
  }

  const AdmissionRequest& request_;
  const TrainJobFacts& facts_;
  const PlanOptions& options_;
  Verdict verdict_;
};

}  // namespace

bool ValidationNeedsFacts(const AdmissionRequest& request) {
  return request.operation == "CREATE" || (request.operation == "UPDATE" && Change(request).plan());
}

Verdict ValidateTrainJob(const AdmissionRequest& request, const TrainJobFacts& facts, const PlanOptions& options) {
  Validator validator(request, facts, options);
  return request.operation == "CREATE"   ? validator.Create()
         : request.operation == "UPDATE" ? validator.Update()
                                         : Verdict();
}

AdmissionRequest UpdateByScale(const AdmissionRequest& request, const Json& job) {
  return UpdateByScale(request, job, {"spec", "trainer", "numNodes"});
}

}  // namespace muster::controller

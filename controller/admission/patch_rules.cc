// SPDX-License-Identifier: Apache-2.0
#include "controller/admission/patch_rules.h"

#include <algorithm>
#include <map>
#include <set>

#include "base/quoted.h"
#include "base/text.h"
#include "controller/admission/meaning.h"
#include "controller/api/fields.h"
#include "controller/api/lenient.h"
#include "controller/api/list_index.h"
#include "controller/api/old_shape.h"
#include "controller/plan/patches.h"
#include "controller/plan/pod_fields.h"
#include "controller/plan/train_job_plan.h"

namespace muster::controller {
namespace {

constexpr const char* kFixedOfPod[] = {
    "serviceAccountName",           "volumes", "initContainers", "containers", "securityContext", "imagePullSecrets",
    "terminationGracePeriodSeconds"};
constexpr const char* kManagedContainers[] = {"node", "dataset-initializer", "model-initializer"};

const Json& JobsOf(const Json& patch) {
  return ListField(PartOf(patch, "trainingRuntimeSpec", "template", "spec"), "replicatedJobs");
}

const Json& PodOf(const Json& job) { return PodSpec(PartOf(job, "template")); }

// The path of a patched pod, for messages.
std::string PodPath(size_t patch, std::string_view job) {
  return fmt::format(
      "spec.runtimePatches[{}].trainingRuntimeSpec.template.spec.replicatedJobs[{}].template.spec.template.spec", patch,
      job);
}

const Json& PatchesOf(const Json& train_job) { return ListField(PartOf(train_job, "spec"), "runtimePatches"); }

void CheckActive(const Json& before, Verdict* verdict) {
  for (const JobsStatus& job : ReadTrainJobStatus(PartOf(before, "status")).jobs) {
    if (job.active == 0) continue;
    verdict->Refuse(kForbidden,
                    fmt::format("spec.runtimePatches: RuntimePatches cannot be modified when the JobSet's "
                                "ReplicatedJob {} is still active; suspend the job, and wait until its pods have gone",
                                job.name));
    return;
  }
}

void CheckPatchedVariables(const TrainJob& job, const Runtime& runtime, Verdict* verdict) {
  std::map<std::string_view, const ReplicatedJob*> jobs;
  for (const ReplicatedJob& of : runtime.jobs) jobs.try_emplace(of.name, &of);
  for (size_t i = 0; i < job.patches.size(); ++i) {
    for (const Json& patched : job.patches[i].replicated_jobs) {
      const std::string name = TextField(patched, "name");
      const auto of = jobs.find(name);
      if (of == jobs.end() || of->second->step == Step::kOther) continue;
      for (const char* container : kManagedContainers) {
        const Json* own = FindNamed(PodSpec(of->second->job_template), "containers", container);
        const Json* given = FindNamed(PodOf(patched), "containers", container);
        if (own == nullptr || given == nullptr) continue;
        const ListIndex own_variables(ListField(*own, "env"), "name");
        std::set<std::string> twice;
        for (const Json& variable : ListField(*given, "env")) {
          const std::string variable_name = TextField(variable, "name");
          if (own_variables.Find(variable_name) != nullptr) twice.insert(variable_name);
        }
        if (twice.empty()) continue;
        verdict->Refuse(kForbidden,
                        fmt::format("{}.containers[{}].env: must not have envs for the dataset-initializer, "
                                    "model-initializer, node containers that the runtime sets: {}; give them in {}",
                                    PodPath(i, name), container, Join({twice.begin(), twice.end()}, ", "),
                                    std::string_view(container) == "node" ? "spec.trainer.env" : "spec.initializer"));
      }
    }
  }
}

// Upstream demands a volume named `initializer`. Muster accepts any name; without a volume the data would be lost.
void CheckInitializerVolumes(const TrainJob& job, const Runtime& runtime, Verdict* verdict) {
  const auto patched = ApplyPatches(job, runtime);
  if (!patched.ok()) return;  // PlanTrainJob() reports it
  for (const ReplicatedJob& of : patched->jobs) {
    const bool dataset = of.step == Step::kDatasetInitializer;
    if (dataset ? !job.dataset : of.step != Step::kModelInitializer || !job.model) continue;
    const char* container = dataset ? "dataset-initializer" : "model-initializer";
    const Json* found = FindNamed(PodSpec(of.job_template), "containers", container);
    if (found == nullptr || !found->value("volumeMounts", Json::array()).empty()) continue;
    verdict->Refuse(
        kForbidden,
        fmt::format("spec.initializer.{0}: must have volumeMount with name - initializer in container {1} of the "
                    "{1} job; mount a volume that the steps after it see in job '{2}' of the runtime",
                    dataset ? "dataset" : "model", container, of.name));
  }
}

}  // namespace

void CheckManagers(const TrainJob& job, Verdict* verdict) {
  for (size_t i = 0; i < job.patches.size(); ++i) {
    const std::string& manager = job.patches[i].manager;
    const size_t slash = manager.find('/');
    if (slash != std::string::npos && slash + 1 < manager.size() && IsVisible(manager) &&
        IsDnsName(std::string_view(manager).substr(0, slash))) {
      continue;
    }
    verdict->Refuse(kForbidden, fmt::format("spec.runtimePatches[{}].manager: {} must be a domain-prefixed path (such "
                                            "as \"acme.io/foo\")",
                                            i, Quoted(manager)));
  }
}

void JudgeNewJob(const TrainJob& job, const Runtime& runtime, Verdict* verdict) {
  CheckManagers(job, verdict);
  CheckPatchedVariables(job, runtime, verdict);
  CheckInitializerVolumes(job, runtime, verdict);
}

void CheckPatchChange(const Json& before, const Json& after, Verdict* verdict) {
  const Json& patches = PatchesOf(after);
  const ListIndex old_patches(PatchesOf(before), "manager");
  for (size_t i = 0; i < patches.size(); ++i) {
    const std::string manager = TextField(patches[i], "manager");
    const Json* old_patch = old_patches.Find(manager);
    if (old_patch == nullptr || manager == kOldShapeManager) continue;
    const ListIndex old_jobs(JobsOf(*old_patch), "name");
    for (const Json& job : JobsOf(patches[i])) {
      const std::string name = TextField(job, "name");
      const Json* old_job = old_jobs.Find(name);
      if (old_job == nullptr) continue;
      for (const char* field : kFixedOfPod) {
        const Json *now = FindField(PodOf(job), field), *once = FindField(PodOf(*old_job), field);
        if (now == nullptr || once == nullptr || SameMeaning(now, once)) continue;
        verdict->Refuse(kInvalid, fmt::format("{}.{}: field is immutable; take the patch of this manager away first, "
                                              "then add it anew",
                                              PodPath(i, name), field));
      }
    }
  }
  if (!IsSuspended(before) && !IsSuspended(after)) {
    verdict->Refuse(kForbidden,
                    "spec.runtimePatches: RuntimePatches can only be modified when the TrainJob is suspended before or "
                    "after the update; suspend it first (spec.suspend: true)");
  } else {
    CheckActive(before, verdict);
  }
}

}  // namespace muster::controller

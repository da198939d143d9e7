// SPDX-License-Identifier: Apache-2.0
#include "controller/plan/patches.h"

#include <algorithm>

#include "base/quoted.h"
#include "base/text.h"
#include "controller/api/lenient.h"
#include "controller/api/strategic_merge.h"
#include "controller/plan/frameworks/framework.h"
#include "controller/plan/pod_fields.h"

namespace muster::controller {
namespace {

// One entry of replicatedJobs in a patch. Refuses containers that the runtime lacks: a merge would add them by mistake.
class PatchedJob {
 public:
  PatchedJob(Framework framework, std::string path, const Json& patch, ReplicatedJob* of)
      : framework_(framework), path_(std::move(path)), patch_(patch), of_(of) {}

  Status Apply() {
    const Json* own = FindField(patch_, "template");
    if (own == nullptr) return absl::OkStatus();
    for (const char* list : {"containers", "initContainers"}) MUSTER_RETURN_IF_ERROR(CheckContainers(list));
    auto merged = StrategicMerge(of_->job_template, *own);
    if (!merged.ok()) return Annotate(merged.status(), fmt::format("{}.template", path_));
    MUSTER_RETURN_IF_ERROR(TidyJobTemplate(fmt::format("{}.template", path_), &*merged));
    of_->job_template = *std::move(merged);
    return absl::OkStatus();
  }

  // Checks the volumes of patched mounts. Call it after all patches: any of them may add the volume.
  Status CheckMounts() const {
    for (const char* list : {"containers", "initContainers"}) {
      for (const Json& container : Patched(list)) {
        for (const Json& mount : ListField(container, "volumeMounts")) {
          MUSTER_RETURN_IF_ERROR(CheckMount(list, TextField(container, "name"), TextField(mount, "name")));
        }
      }
    }
    return absl::OkStatus();
  }

 private:
  const Json& Patched(const char* list) const { return ListField(PodSpec(PartOf(patch_, "template")), list); }

  Status CheckContainers(const char* list) const {
    const Json& known = PodSpec(of_->job_template);
    for (const Json& container : Patched(list)) {
      const std::string name = TextField(container, "name");
      const std::string where = fmt::format("{}.template.spec.template.spec.{}", path_, list);
      if (FindNamed(known, list, name) == nullptr) {
        return absl::InvalidArgumentError(
            fmt::format("{}: job '{}' of the runtime has no {} {}; there are: {}", where, of_->name,
                        std::string_view(list) == "containers" ? "container" : "init container", Quoted(name),
                        NamesIn(known, list)));
      }
      MUSTER_RETURN_IF_ERROR(
          CheckReservedNames(framework_, fmt::format("{}[{}].env", where, name), ListField(container, "env")));
    }
    return absl::OkStatus();
  }

  Status CheckMount(const char* list, const std::string& container, const std::string& volume) const {
    const Json& pod = PodSpec(of_->job_template);
    if (FindNamed(pod, "volumes", volume) != nullptr) return absl::OkStatus();
    return absl::InvalidArgumentError(
        fmt::format("{}.template.spec.template.spec.{}[{}].volumeMounts: job '{}' has no volume {}; there are: {}",
                    path_, list, container, of_->name, Quoted(volume), NamesIn(pod, "volumes")));
  }

  const Framework framework_;
  const std::string path_;
  const Json& patch_;
  ReplicatedJob* const of_;
};

StatusOr<ReplicatedJob*> FindJob(std::string_view path, const std::string& name, std::vector<ReplicatedJob>* jobs) {
  const auto found = std::find_if(jobs->begin(), jobs->end(), [&](const auto& of) { return of.name == name; });
  if (found != jobs->end()) return &*found;
  std::vector<std::string> names;
  for (const ReplicatedJob& of : *jobs) names.push_back(of.name);
  return absl::InvalidArgumentError(fmt::format("{}.name: the runtime has no job {}; there are: {}", path, Quoted(name),
                                                names.empty() ? "none" : Join(names, ", ")));
}

// Merges labels and annotations of `over` into `metadata`; `over` wins.
void MergeMetadata(const Json& over, Json* metadata) {
  for (const char* field : {"labels", "annotations"}) {
    for (const auto& [key, value] : MapField(over, field).items()) {
      if (value.is_string()) (*metadata)[field][key] = value;
    }
  }
}

}  // namespace

StatusOr<PatchedRuntime> ApplyPatches(const TrainJob& job, const Runtime& runtime) {
  PatchedRuntime patched{.jobs = runtime.jobs, .metadata = Json::object()};
  for (size_t i = 0; i < patched.jobs.size(); ++i) {
    const std::string path =
        fmt::format("runtime '{}': spec.template.spec.replicatedJobs[{}].template", runtime.meta.name, i);
    MUSTER_RETURN_IF_ERROR(TidyJobTemplate(path, &patched.jobs[i].job_template));
  }
  MergeMetadata(runtime.template_metadata, &patched.metadata);
  std::vector<PatchedJob> done;
  for (size_t i = 0; i < job.patches.size(); ++i) {
    const RuntimePatch& patch = job.patches[i];
    MergeMetadata(patch.metadata, &patched.metadata);
    if (!patch.replicated_jobs.is_array()) continue;
    for (size_t j = 0; j < patch.replicated_jobs.size(); ++j) {
      const std::string path =
          fmt::format("spec.runtimePatches[{}].trainingRuntimeSpec.template.spec.replicatedJobs[{}]", i, j);
      const Json& one = patch.replicated_jobs[j];
      MUSTER_ASSIGN_OR_RETURN(ReplicatedJob * of, FindJob(path, TextField(one, "name"), &patched.jobs));
      PatchedJob& last = done.emplace_back(runtime.ml_policy.framework, path, one, of);
      MUSTER_RETURN_IF_ERROR(last.Apply());
    }
  }
  for (const PatchedJob& one : done) MUSTER_RETURN_IF_ERROR(one.CheckMounts());
  return patched;
}

}  // namespace muster::controller

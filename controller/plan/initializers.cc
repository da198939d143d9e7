// SPDX-License-Identifier: Apache-2.0
#include "controller/plan/initializers.h"

#include <algorithm>

#include "base/text.h"
#include "controller/plan/choice.h"
#include "controller/plan/pod_fields.h"

namespace muster::controller {
namespace {

struct Kind {
  Step step;
  const char* container;
  const char* config;    // the name in upstream's messages
  const char* argument;  // of muster-initializer
};

constexpr Kind kDataset = {Step::kDatasetInitializer, "dataset-initializer", "datasetConfig", "dataset"};
constexpr Kind kModel = {Step::kModelInitializer, "model-initializer", "modelConfig", "model"};

// Muster's image serves both kinds and needs the argument. Runtimes written for upstream's images do not give one.
void ChooseKind(const Kind& kind, std::vector<ReplicatedJob>* jobs) {
  for (ReplicatedJob& of : *jobs) {
    Json* container =
        of.step == kind.step ? FindNamed(PodSpec(of.job_template), "containers", kind.container) : nullptr;
    if (container == nullptr || ImageName(TextField(*container, "image")) != "muster-initializer") continue;
    if (FindField(*container, "command") != nullptr || FindField(*container, "args") != nullptr) continue;
    (*container)["args"] = Json::array({kind.argument});
  }
}

Status Apply(const Initializer& initializer, const Kind& kind, std::string_view path,
             std::vector<ReplicatedJob>* jobs) {
  bool found = false;
  for (ReplicatedJob& of : *jobs) {
    if (of.step != kind.step) continue;
    found = true;
    Json& pod = PodSpec(of.job_template);
    Json* container = FindNamed(pod, "containers", kind.container);
    if (container == nullptr) {
      return absl::InvalidArgumentError(
          fmt::format("{}: must have container with name - {} in the {} job; job '{}' of the runtime has: {}", path,
                      kind.container, kind.container, of.name, NamesIn(pod, "containers")));
    }
    if (!initializer.storage_uri.empty()) UpsertEnv(EnvValue("STORAGE_URI", initializer.storage_uri), container);
    UpsertEnvLast(initializer.env, container);
    if (!initializer.secret.empty()) {
      Json& sources = (*container)["envFrom"];
      if (sources.is_null()) sources = Json::array();
      const Json secret = {{"secretRef", {{"name", initializer.secret}}}};
      sources.push_back(secret);
    }
  }
  if (found) return absl::OkStatus();
  return absl::InvalidArgumentError(
      fmt::format("{}: must have {} job when trainJob is configured with input {}; the runtime has no job with label "
                  "{}: {}",
                  path, kind.container, kind.config, kAncestorLabel, kind.container));
}

}  // namespace

Status ApplyInitializers(const TrainJob& job, std::vector<ReplicatedJob>* jobs) {
  for (const Kind& kind : {kDataset, kModel}) ChooseKind(kind, jobs);
  if (job.dataset) MUSTER_RETURN_IF_ERROR(Apply(*job.dataset, kDataset, "spec.initializer.dataset", jobs));
  if (job.model) MUSTER_RETURN_IF_ERROR(Apply(*job.model, kModel, "spec.initializer.model", jobs));
  return absl::OkStatus();
}

Status OrderJobs(const TrainJob& job, const Runtime& runtime, std::vector<ReplicatedJob>* jobs) {
  MUSTER_ASSIGN_OR_RETURN(const std::string_view order,
                          ChoiceOf(job, runtime, kInitializersAnnotation, "parallel", "sequential"));
  if (runtime.in_order) {
    for (size_t i = 1; i < jobs->size(); ++i) {
      (*jobs)[i].depends_on = {{(*jobs)[i - 1].name, Dependency::Until::kReady}};
    }
    return absl::OkStatus();
  }
  if (std::any_of(jobs->begin(), jobs->end(), [](const auto& of) { return !of.depends_on.empty(); })) {
    return absl::OkStatus();
  }
  std::vector<Dependency> datasets, both;
  for (const ReplicatedJob& of : *jobs) {
    if (of.step == Step::kDatasetInitializer) datasets.push_back({of.name, Dependency::Until::kComplete});
    if (of.step == Step::kDatasetInitializer || of.step == Step::kModelInitializer) {
      both.push_back({of.name, Dependency::Until::kComplete});
    }
  }
  for (ReplicatedJob& of : *jobs) {
    if (of.step == Step::kDatasetInitializer) continue;
    if (of.step != Step::kModelInitializer) {
      of.depends_on = both;
    } else if (order != "parallel") {
      of.depends_on = datasets;
    }
  }
  return absl::OkStatus();
}

}  // namespace muster::controller

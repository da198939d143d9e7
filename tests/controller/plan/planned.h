// SPDX-License-Identifier: Apache-2.0
// Builds jobs, runtimes and plans from short YAML texts, for tests.
#pragma once

#include <gtest/gtest.h>

#include <string>
#include <string_view>

#include "base/json_fields.h"
#include "controller/api/yaml.h"
#include "controller/plan/plan.h"
#include "controller/plan/train_job_plan.h"
#include "tests/controller/api/yaml_of.h"

namespace muster::controller {

// A TrainJob `train` in namespace `ns`; `spec` is YAML of its spec, beside runtimeRef.
inline TrainJob JobWith(std::string_view spec = "{}", std::string_view annotations = "{}") {
  Json object = {{"apiVersion", kTrainerApi},
                 {"kind", "TrainJob"},
                 {"metadata", {{"name", "train"}, {"namespace", "ns"}, {"uid", "uid-1"}}},
                 {"spec", YamlOf(spec)}};
  object["metadata"]["annotations"] = YamlOf(annotations);
  object["spec"]["runtimeRef"] = {{"name", "runtime"}};
  auto job = ReadTrainJob(object);
  if (!job.ok()) ADD_FAILURE() << Message(job.status());
  return job.value_or(TrainJob());
}

// A ClusterTrainingRuntime named `runtime`; `spec` and `annotations` are YAML.
inline Runtime RuntimeWith(std::string_view spec, std::string_view annotations = "{}") {
  Json object = {{"apiVersion", kTrainerApi},
                 {"kind", "ClusterTrainingRuntime"},
                 {"metadata", {{"name", "runtime"}}},
                 {"spec", YamlOf(spec)}};
  object["metadata"]["annotations"] = YamlOf(annotations);
  auto runtime = ReadRuntime(object);
  if (!runtime.ok()) ADD_FAILURE() << Message(runtime.status());
  return runtime.value_or(Runtime());
}

// YAML of a runtime with one trainer job `node`: `policy` is mlPolicy; `job` goes into the Job's spec, `pod` into the
// pod's spec, `container` into the container `node`.
struct RuntimeParts {
  std::string policy = "{numNodes: 1, torch: {}}";
  std::string job = "{}", pod = "{}", container = "{}";
  std::string set = "{}";  // further fields of template.spec, beside replicatedJobs
  std::string annotations = "{}";
};
inline Runtime TrainerRuntime(const RuntimeParts& parts = {}) {
  Json container = YamlOf(parts.container);
  container["name"] = "node";
  if (!container.contains("image")) container["image"] = "image:1";
  Json pod = YamlOf(parts.pod);
  if (!pod.contains("containers")) pod["containers"] = Json::array();
  pod["containers"].insert(pod["containers"].begin(), container);
  Json job = YamlOf(parts.job);
  job["template"]["spec"] = pod;
  const Json labels = {{kAncestorLabel, "trainer"}};
  Json one = {{"name", "node"}, {"template", {{"metadata", {{"labels", labels}}}, {"spec", job}}}};
  Json set = YamlOf(parts.set);
  set["replicatedJobs"] = Json::array({one});
  Json spec = {{"template", {{"spec", set}}}};
  if (!parts.policy.empty()) spec["mlPolicy"] = YamlOf(parts.policy);
  return RuntimeWith(WriteYaml(spec), parts.annotations);
}

inline TrainJobPlan PlanOf(const TrainJob& job, const Runtime& runtime, const PlanOptions& options = {}) {
  auto plan = PlanTrainJob(job, runtime, options);
  if (!plan.ok()) ADD_FAILURE() << Message(plan.status());
  return plan.value_or(TrainJobPlan());
}

// The message of a refused plan; empty: the plan was made.
inline std::string Refusal(const TrainJob& job, const Runtime& runtime) {
  const auto plan = PlanTrainJob(job, runtime, {});
  if (plan.ok()) return "";
  EXPECT_TRUE(absl::IsInvalidArgument(plan.status())) << plan.status();
  return std::string(Message(plan.status()));
}

// The value at a JSON pointer; null: there is none.
inline Json At(const Json& object, const std::string& pointer) {
  const Json::json_pointer at(pointer);
  return object.contains(at) ? object.at(at) : Json();
}

inline const PlannedJob& JobNamed(const TrainJobPlan& plan, std::string_view replicated_job) {
  for (const PlannedJob& job : plan.jobs) {
    if (job.replicated_job == replicated_job) return job;
  }
  ADD_FAILURE() << "no job " << replicated_job;
  static const PlannedJob none;
  return none;
}

inline Json ContainerOf(const PlannedJob& job, size_t index = 0) {
  return At(job.Object(), "/spec/template/spec/containers/" + std::to_string(index));
}

// The variable's value, or "from ..." with its valueFrom; "-": the variable is absent.
inline std::string EnvOf(const Json& container, std::string_view name) {
  for (const Json& variable : At(container, "/env")) {
    if (TextField(variable, "name") != name) continue;
    if (variable.contains("value")) return TextField(variable, "value");
    return "from " + WriteJson(At(variable, "/valueFrom"));
  }
  return "-";
}

}  // namespace muster::controller

// SPDX-License-Identifier: Apache-2.0
// Builds PyTorchJobs from short YAML texts, and plans them, for tests.
#pragma once

#include <gtest/gtest.h>

#include <string>
#include <string_view>

#include "base/text.h"
#include "controller/plan/pytorch_plan.h"
#include "tests/controller/plan/planned.h"

namespace muster::controller {

inline Json YamlList(std::string_view text) { return YamlOf(fmt::format("list: {}", text))["list"]; }

// A PyTorchJob `a` in namespace `ns`.
struct PyTorchParts {
  bool master = true;
  int workers = 2;                           // 0: no Worker
  std::string policy = "OnFailure";          // restartPolicy of Master and Worker
  std::string master_policy, worker_policy;  // empty: `policy`
  std::string run = "{}";                    // runPolicy
  std::string spec = "{}";                   // further fields of spec
  std::string annotations = "{}";            // metadata.annotations of the job
  std::string container = "{}";              // further fields of the container `pytorch`, of both types
  std::string master_container;              // empty: `container`
  std::string pod = "{}";                    // further fields of the PodSpec, of both types
  std::string metadata = "{}";               // metadata of the pod template, of both types
  std::string name = "a";
};

// A container that runs under the agent.
inline constexpr char kTorchrun[] = "{command: [torchrun, train.py]}";

inline Json PyTorchJobObject(const PyTorchParts& parts) {
  Json object = {{"apiVersion", kKubeflowApi},
                 {"kind", kPyTorchJobKind},
                 {"metadata", {{"name", parts.name}, {"namespace", "ns"}, {"uid", "uid-a"}, {"generation", 1}}},
                 {"spec", YamlOf(parts.spec)}};
  object["metadata"]["annotations"] = YamlOf(parts.annotations);
  object["spec"]["runPolicy"] = YamlOf(parts.run);
  const auto add = [&](const char* type, int replicas, const std::string& policy, const std::string& own) {
    Json container = YamlOf(own);
    container["name"] = "pytorch";
    container["image"] = "torch:2";
    Json pod = YamlOf(parts.pod);
    if (!pod.contains("containers")) pod["containers"] = Json::array();
    pod["containers"].insert(pod["containers"].begin(), container);
    object["spec"]["pytorchReplicaSpecs"][type] = {
        {"replicas", replicas},
        {"restartPolicy", policy.empty() ? parts.policy : policy},
        {"template", {{"metadata", YamlOf(parts.metadata)}, {"spec", std::move(pod)}}}};
  };
  if (parts.master) {
    add("Master", 1, parts.master_policy, parts.master_container.empty() ? parts.container : parts.master_container);
  }
  if (parts.workers > 0) add("Worker", parts.workers, parts.worker_policy, parts.container);
  return object;
}

inline PyTorchJob PyTorchJobOf(const Json& object) {
  auto job = ReadPyTorchJob(object);
  if (!job.ok()) ADD_FAILURE() << Message(job.status());
  return job.value_or(PyTorchJob());
}

inline PyTorchOptions PyTorchTestOptions() {
  PyTorchOptions options;
  options.agent.agent_image = "muster:1";
  return options;
}

inline PyTorchPlan PyTorchPlanOf(const PyTorchJob& job, const PyTorchOptions& options = PyTorchTestOptions()) {
  auto plan = PlanPyTorchJob(job, options);
  if (!plan.ok()) ADD_FAILURE() << Message(plan.status());
  return plan.value_or(PyTorchPlan());
}

struct PlannedPyTorch {
  explicit PlannedPyTorch(const PyTorchParts& parts, const PyTorchOptions& options = PyTorchTestOptions())
      : job(PyTorchJobOf(PyTorchJobObject(parts))), plan(PyTorchPlanOf(job, options)) {}

  Json Pod(ReplicaType type, int index, const PodAttempt& attempt = {}) const {
    return PodOfReplica(job, plan, *plan.Find(type), index, attempt);
  }
  Json Service(ReplicaType type, int index) const { return ServiceOfReplica(job, *plan.Find(type), index); }

  PyTorchJob job;
  PyTorchPlan plan;
};

// The message of a refused plan; empty: the plan was made.
inline std::string PyTorchRefusal(const PyTorchParts& parts, const PyTorchOptions& options = PyTorchTestOptions()) {
  const auto plan = PlanPyTorchJob(PyTorchJobOf(PyTorchJobObject(parts)), options);
  if (plan.ok()) return "";
  EXPECT_TRUE(absl::IsInvalidArgument(plan.status())) << plan.status();
  return std::string(Message(plan.status()));
}

}  // namespace muster::controller

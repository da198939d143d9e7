// SPDX-License-Identifier: Apache-2.0
// `plan` and `muster local` refuse the TrainJobs and runtimes that the webhooks refuse.
#include "controller/admission/validate_files.h"

#include <gmock/gmock.h>

#include "controller/plan/plan_files.h"

namespace muster::controller {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;

// The step `name` of a runtime. `labels`: further ones of the runtime.
std::string RuntimeOf(std::string_view container, std::string_view replicas = "1", std::string_view labels = "") {
  return fmt::format(R"(
apiVersion: trainer.kubeflow.org/v1alpha1
kind: TrainingRuntime
metadata: {{name: r, labels: {{{2}}}}}
spec:
  mlPolicy: {{numNodes: 1, torch: {{}}}}
  template:
    spec:
      replicatedJobs:
      - name: dataset-initializer
        template:
          metadata: {{labels: {{trainer.kubeflow.org/trainjob-ancestor-step: dataset-initializer}}}}
          spec: {{template: {{spec: {{containers: [{{name: dataset-initializer, image: i}}]}}}}}}
      - name: node
        replicas: {1}
        dependsOn: [{{name: dataset-initializer, status: Complete}}]
        template:
          metadata: {{labels: {{trainer.kubeflow.org/trainjob-ancestor-step: trainer}}}}
          spec: {{template: {{spec: {{containers: [{{name: node, image: i, {0}}}]}}}}}}
)",
                     container, replicas, labels);
}

std::string JobOf(std::string_view spec) {
  return fmt::format(R"(
apiVersion: trainer.kubeflow.org/v1alpha1
kind: TrainJob
metadata: {{name: j}}
spec:
  runtimeRef: {{kind: TrainingRuntime, name: r}}
{}
)",
                     spec);
}

// Why the files are refused; empty: they are not.
std::string Refusal(std::string_view spec, const std::string& runtime, bool own = true) {
  const std::vector<InputFile> files = {{"job.yaml", JobOf(spec)}, {"runtime.yaml", runtime, own}};
  const auto planned = PlanFiles(files, {}, {.check = ValidateTrainJob});
  return std::string(Message(planned.status()));
}

TEST(ValidateFiles, WhatTheWebhooksRefuse) {
  const std::string runtime = RuntimeOf("command: [x], env: [{name: A, value: b}]");
  EXPECT_EQ(Refusal("  trainer: {numNodes: 2}", runtime), "");
  EXPECT_THAT(Refusal("  initializer: {dataset: {storageUri: \"hf://org/set\"}}", runtime),
              AllOf(HasSubstr("job.yaml:7: spec.initializer.dataset: must have volumeMount with name - initializer"),
                    HasSubstr("container dataset-initializer")));
  EXPECT_THAT(Refusal("  runtimePatches: [{manager: me}]", runtime),
              HasSubstr("job.yaml:7: spec.runtimePatches[0].manager: 'me' must be a domain-prefixed path"));
  EXPECT_THAT(Refusal("  runtimePatches: [{manager: a.b/c, trainingRuntimeSpec: {template: {spec: {replicatedJobs: "
                      "[{name: node, template: {spec: {template: {spec: {containers: [{name: node, env: [{name: A, "
                      "value: c}]}]}}}}}]}}}}]",
                      runtime),
              HasSubstr("containers[node].env: must not have envs"));
  EXPECT_THAT(Refusal("  trainer: {resourcesPerNode: {requests: {cpu: 2}, limits: {cpu: 1}}}", runtime),
              HasSubstr("requests.cpu: '2' is above the limit, 1"));
  EXPECT_THAT(Refusal("", RuntimeOf("command: [x], imagePullPolicy: Sometimes")),
              HasSubstr("imagePullPolicy: 'Sometimes' is not one of Always"));
}

// As in a cluster: rules of runtimes are not for those that come with Muster, nor for those with the label.
TEST(ValidateFiles, RulesOfRuntimes) {
  const std::string said = "runtime.yaml:15: spec.template.spec.replicatedJobs[1].replicas: 2: always must be 1";
  EXPECT_THAT(Refusal("", RuntimeOf("command: [x]", "2")), HasSubstr(said));
  EXPECT_EQ(Refusal("", RuntimeOf("command: [x]", "2"), false), "");
  EXPECT_EQ(Refusal("", RuntimeOf("command: [x]", "2", "trainer.kubeflow.org/webhook-validation: disabled")), "");
}

// Muster's webhooks check no more than the form of a job that another controller manages.
TEST(ValidateFiles, AnotherManagersJob) {
  EXPECT_EQ(
      Refusal("  managedBy: kueue.x-k8s.io/multikueue\n  runtimePatches: [{manager: me}]", RuntimeOf("command: [x]")),
      "");
}

}  // namespace
}  // namespace muster::controller

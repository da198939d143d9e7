// SPDX-License-Identifier: Apache-2.0
#include "controller/admission/validate_runtime.h"

#include "tests/controller/admission/requests.h"

namespace muster::controller {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

std::string Job(const std::string& name, const std::string& step = "", const std::string& container = "node",
                const std::string& more = "", const std::string& job = "") {
  return fmt::format(
      "{{name: {}, {}template: {{metadata: {{labels: {{{}}}}}, spec: {{{}template: {{spec: {{containers: [{{name: {}, "
      "image: x}}]}}}}}}}}}}",
      name, more, step.empty() ? "" : "trainer.kubeflow.org/trainjob-ancestor-step: " + step, job, container);
}

Json RuntimeOf(const std::string& jobs, const std::string& set = "", const std::string& more = "{}") {
  Json runtime = YamlOf(fmt::format(
      "{{apiVersion: trainer.kubeflow.org/v1alpha1, kind: ClusterTrainingRuntime, metadata: {{name: runtime}}, spec: "
      "{{mlPolicy: {{numNodes: 2, torch: {{}}}}, template: {{spec: {{replicatedJobs: [{}]{}}}}}}}}}",
      jobs, set));
  runtime.merge_patch(YamlOf(more));
  return runtime;
}

Verdict Created(const Json& runtime) {
  return ValidateRuntime(RequestOf("CREATE", "clustertrainingruntimes", runtime), {});
}

TEST(ValidateRuntime, WhatIsAccepted) {
  for (const Json& runtime : {
           RuntimeOf(Job("node", "trainer")),
           RuntimeOf(Job("a", "dataset-initializer", "dataset-initializer") + ", " + Job("node", "trainer")),
           RuntimeOf(Job("a", "", "main", "replicas: 3, ") + ", " + Job("node", "trainer")),
           RuntimeOf(Job("a", "", "main", "replicas: 3, ", "completions: 2, parallelism: 2, ") + ", " +
                         Job("node", "trainer"),
                     ", coordinator: {replicatedJob: a, jobIndex: 2, podIndex: 1}"),
           RuntimeOf(Job("node", "trainer"), ", coordinator: {replicatedJob: node, podIndex: 1}"),
           RuntimeOf(Job("a") + ", " + Job("b", "", "node", "dependsOn: [{name: a, status: Ready}], ")),
       }) {
    EXPECT_EQ(Said(Created(runtime)), "") << runtime;
  }
}

TEST(ValidateRuntime, WhatIsRefused) {
  const std::string coordinated = Job("a", "", "main", "replicas: 2, ", "completions: 2, parallelism: 2, ");
  struct Row {
    Json runtime;
    std::string message;
  };
  for (const Row& row : std::vector<Row>{
           {RuntimeOf(Job("node", "trainer", "node", "replicas: 2, ")),
            "403 spec.template.spec.replicatedJobs[0].replicas: 2: always must be 1"},
           {RuntimeOf(Job("node", "trainer", "main")), "must contain the required container for the ancestor: trainer"},
           {RuntimeOf(Job("a", "dataset-initializer")),
            "must contain the required container for the ancestor: dataset-initializer"},
           {RuntimeOf(Job("a", "model-initializer")),
            "must contain the required container for the ancestor: model-initializer"},
           {RuntimeOf(Job("a", "", "x", "replicas: 100000, ", "parallelism: 100000, ")),
            "the product of replicas and parallelism must not exceed 2147483647"},
           {RuntimeOf(Job("Node")), "spec.template.spec.replicatedJobs[0].name: 'Node' is not a DNS label"},
           {RuntimeOf(Job("node") + ", " + Job("node")), "'node' is there twice"},
           {RuntimeOf(Job("node", "", "x", "groupName: A_b, ")), "groupName: 'A_b' is not a DNS label"},
           {RuntimeOf(Job("node"), ", network: {subdomain: a.b}"), "subdomain: 'a.b' is not a DNS label"},
           {RuntimeOf(Job("a", "", "x", "dependsOn: [{name: b, status: Ready}], ") + ", " + Job("b")),
            "'b' is not a job above this one"},
           {RuntimeOf(Job("a") + ", " + Job("b", "", "x", "dependsOn: [{name: c, status: Ready}], ")),
            "'c' is not a job above this one; these are: a"},
           {RuntimeOf(Job("a") + ", " + Job("b", "", "x", "dependsOn: [{name: a, status: Ready}], "),
                      ", startupPolicy: {startupPolicyOrder: InOrder}"),
            "StartupPolicy and DependsOn APIs are mutually exclusive"},
           {RuntimeOf(Job("a"), ", successPolicy: {operator: All, targetReplicatedJobs: [b]}"),
            "'b' is not a replicated job; these are: a"},
           {RuntimeOf(Job("a"),
                      ", failurePolicy: {rules: [{action: FailJobSet, name: r}, {action: FailJobSet, name: r}]}"),
            "'r' is there twice"},
           {RuntimeOf(Job("a"), ", failurePolicy: {rules: [{action: FailJobSet, targetReplicatedJobs: [b]}]}"),
            "'b' is not a replicated job"},
           {RuntimeOf(Job("a"), ", coordinator: {replicatedJob: b}"), "'b' is not a replicated job"},
           {RuntimeOf(coordinated, ", coordinator: {replicatedJob: a, jobIndex: 2}"),
            "coordinator.jobIndex: 2 is invalid for replicatedJob 'a', which has 2 replicas"},
           {RuntimeOf(coordinated, ", coordinator: {replicatedJob: a, podIndex: 2}"),
            "coordinator.podIndex: 2 is invalid for replicatedJob 'a', which has 2 completions"},
           {RuntimeOf(Job("a", "", "x", "", "completionMode: NonIndexed, "), ", coordinator: {replicatedJob: a}"),
            "job for coordinator pod must be indexed completion mode"},
           {RuntimeOf(Job("a"), "", "{spec: {podGroupPolicy: {coscheduling: {}, volcano: {}}}}"), "leave one out"},
           {RuntimeOf(Job("a"), "", "{spec: {failurePolicy: {}}}"), "it belongs in spec.template.spec.failurePolicy"},
       }) {
    EXPECT_THAT(Said(Created(row.runtime)), HasSubstr(row.message));
  }
}

TEST(ValidateRuntime, EachMistakeIsSaid) {
  EXPECT_THAT(Said(Created(RuntimeOf(Job("node", "trainer", "main", "replicas: 2, ")))),
              ::testing::AllOf(HasSubstr("always must be 1"), HasSubstr("must contain the required container")));
}

TEST(ValidateRuntime, WarnsOfDeprecationAndOfWhatCannotBePlanned) {
  const Json deprecated =
      RuntimeOf(Job("node", "trainer"), "", "{metadata: {labels: {trainer.kubeflow.org/support: deprecated}}}");
  EXPECT_THAT(Created(deprecated).warnings,
              ElementsAre(HasSubstr("ClusterTrainingRuntime \"runtime\" is deprecated and")));
  EXPECT_THAT(ValidateRuntime(RequestOf("UPDATE", "clustertrainingruntimes", deprecated, deprecated), {}).warnings,
              IsEmpty());
  const Json targets =
      RuntimeOf(Job("node", "trainer"), "",
                "{spec: {mlPolicy: {torch: {envInjection: {targets: [{jobName: x, containerNames: [b]}]}}}}}");
  EXPECT_THAT(Created(targets).warnings, ElementsAre(HasSubstr("there is no job 'x'")));
  const Json word =
      RuntimeOf(Job("node", "trainer"), "", "{metadata: {annotations: {muster.dev/standby-workers: always}}}");
  EXPECT_THAT(Created(word).warnings,
              ElementsAre(HasSubstr("a TrainJob that adds nothing to this runtime would be refused: runtime 'runtime': "
                                    "metadata.annotations.muster.dev/standby-workers: 'always' is neither auto")));
}

TEST(ValidateRuntime, UpdatesThatLeaveTheSpecPass) {
  const Json wrong = RuntimeOf(Job("node", "trainer", "main"));
  Json labelled = wrong, changed = wrong;
  labelled["metadata"]["labels"]["a"] = "b";
  changed["spec"]["mlPolicy"]["numNodes"] = 3;
  const auto update = [&](const Json& runtime) {
    return Said(ValidateRuntime(RequestOf("UPDATE", "clustertrainingruntimes", runtime, wrong), {}));
  };
  EXPECT_EQ(update(labelled), "");
  EXPECT_THAT(update(changed), HasSubstr("must contain the required container"));
  changed["metadata"]["deletionTimestamp"] = "2020-01-01T00:00:00Z";
  EXPECT_EQ(update(changed), "");
}

TEST(ValidateRuntime, AProtectedRuntimeInUseIsRecognized) {
  Json runtime = RuntimeOf(Job("node"));
  const auto request = [&] { return RequestOf("DELETE", "clustertrainingruntimes", Json(), runtime); };
  EXPECT_FALSE(IsProtected(request()));
  runtime["metadata"]["labels"][kProtectedLabel] = "true";
  EXPECT_TRUE(IsProtected(request()));
  EXPECT_FALSE(IsProtected(RequestOf("UPDATE", "clustertrainingruntimes", runtime, runtime)));

  EXPECT_TRUE(UsesRuntime(TrainJobOf("{}"), request()));
  EXPECT_FALSE(UsesRuntime(TrainJobOf("{runtimeRef: {kind: TrainingRuntime}}"), request()));
  EXPECT_FALSE(UsesRuntime(TrainJobOf("{runtimeRef: {name: other}}"), request()));
  EXPECT_FALSE(
      UsesRuntime(TrainJobOf("{}", "{status: {conditions: [{type: Complete, status: 'True', reason: r, message: m}]}}"),
                  request()));
  EXPECT_FALSE(UsesRuntime(TrainJobOf("{}", "{metadata: {deletionTimestamp: x}}"), request()));
  EXPECT_THAT(Said(RefuseDelete(request(), "ns/train")), HasSubstr("403 ClusterTrainingRuntime 'runtime' has label"));
}

}  // namespace
}  // namespace muster::controller

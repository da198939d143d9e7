// SPDX-License-Identifier: Apache-2.0
// The initializers: their containers, and the order of all jobs.
#include "tests/controller/plan/planned.h"

namespace muster::controller {
namespace {

using ::testing::HasSubstr;

constexpr char kSteps[] = R"(
mlPolicy: {numNodes: 1, torch: {}}
template:
  spec:
    replicatedJobs:
    - name: data
      template:
        metadata: {labels: {trainer.kubeflow.org/trainjob-ancestor-step: dataset-initializer}}
        spec:
          template:
            spec:
              containers:
              - {name: dataset-initializer, image: i, env: [{name: STORAGE_URI, value: old}, {name: KEPT, value: k}],
                 envFrom: [{configMapRef: {name: c}}]}
    - name: model
      template:
        metadata: {labels: {trainer.kubeflow.org/trainjob-ancestor-step: model-initializer}}
        spec: {template: {spec: {containers: [{name: model-initializer, image: i}]}}}
    - name: node
      template:
        metadata: {labels: {trainer.kubeflow.org/trainjob-ancestor-step: trainer}}
        spec: {template: {spec: {containers: [{name: node, image: i}]}}}
    - name: side
      template: {spec: {template: {spec: {containers: [{name: c, image: i}]}}}}
)";

TEST(Initializers, GetSourceVariablesAndSecret) {
  const TrainJobPlan plan = PlanOf(JobWith(R"({initializer: {
dataset: {storageUri: "s3://bucket/key", env: [{name: KEPT, value: own}, {name: NEW, value: fresh}], secretRef: {name: s}},
model: {env: [{name: A, value: b}]}}})"),
                                   RuntimeWith(kSteps));
  EXPECT_EQ(ContainerOf(JobNamed(plan, "data")), YamlOf(R"(
name: dataset-initializer
image: i
env: [{name: STORAGE_URI, value: "s3://bucket/key"}, {name: KEPT, value: own}, {name: NEW, value: fresh}]
envFrom: [{configMapRef: {name: c}}, {secretRef: {name: s}}]
)"));
  EXPECT_EQ(ContainerOf(JobNamed(plan, "model")),
            YamlOf("{name: model-initializer, image: i, env: [{name: A, value: b}]}"));
  EXPECT_EQ(JobNamed(plan, "data").step, Step::kDatasetInitializer);
  EXPECT_EQ(JobNamed(plan, "model").step, Step::kModelInitializer);
}

TEST(Initializers, MustersImageIsToldWhichOneItIs) {
  struct Row {
    std::string container;
    Json args;
  };
  for (const Row& row : std::vector<Row>{
           {"image: muster-initializer", Json::array({"model"})},
           {"image: \"registry:5000/a/muster-initializer:2@sha256:0\"", Json::array({"model"})},
           {"image: muster-initializer, args: [dataset]", Json::array({"dataset"})},
           {"image: muster-initializer, command: [x]", Json()},
           {"image: other", Json()},
       }) {
    SCOPED_TRACE(row.container);
    const TrainJobPlan plan = PlanOf(JobWith(), RuntimeWith(Replaced(kSteps, "name: model-initializer, image: i",
                                                                     "name: model-initializer, " + row.container)));
    EXPECT_EQ(At(ContainerOf(JobNamed(plan, "model")), "/args"), row.args);
  }
}

TEST(Initializers, NeedTheirJobAndContainer) {
  const TrainJob job = JobWith("{initializer: {dataset: {storageUri: \"s3://b/k\"}}}");
  EXPECT_THAT(Refusal(job, TrainerRuntime()),
              HasSubstr("spec.initializer.dataset: must have dataset-initializer job when trainJob is configured with "
                        "input datasetConfig"));
  EXPECT_THAT(
      Refusal(job, RuntimeWith(Replaced(kSteps, "{name: dataset-initializer", "{name: other"))),
      HasSubstr("must have container with name - dataset-initializer in the dataset-initializer job; job 'data' "
                "of the runtime has: other"));
  EXPECT_THAT(Refusal(JobWith("{initializer: {model: {storageUri: \"s3://b/k\"}}}"), TrainerRuntime()),
              HasSubstr("input modelConfig"));
}

std::string After(const TrainJobPlan& plan, std::string_view job) {
  std::string text;
  for (const Dependency& dependency : JobNamed(plan, job).after) {
    if (!text.empty()) text += " ";
    text += dependency.job + (dependency.until == Dependency::Until::kReady ? ":Ready" : ":Complete");
  }
  return text;
}

TEST(Initializers, TheStepsWaitForEachOtherInOrder) {
  struct Row {
    std::string name, annotations, runtime_annotations, from, to;
    std::string data, model, node, side;
  };
  const std::string both = "data:Complete model:Complete", parallel = "{muster.dev/initializers: parallel}";
  for (const Row& row : std::vector<Row>{
           {"nothing said", "{}", "{}", "", "", "", "data:Complete", both, both},
           {"parallel", parallel, "{}", "", "", "", "", both, both},
           {"parallel by the runtime", "{}", parallel, "", "", "", "", both, both},
           {"the job wins", "{muster.dev/initializers: sequential}", parallel, "", "", "", "data:Complete", both, both},
           {"the runtime's own", "{}", "{}", "- name: node",
            "- name: node\n      dependsOn: [{name: model, status: Ready}]", "", "", "model:Ready", ""},
           {"in order", "{}", "{}",
            "    replicatedJobs:", "    startupPolicy: {startupPolicyOrder: InOrder}\n    replicatedJobs:", "",
            "data:Ready", "model:Ready", "node:Ready"},
       }) {
    SCOPED_TRACE(row.name);
    const std::string spec = row.from.empty() ? kSteps : Replaced(kSteps, row.from, row.to);
    const TrainJobPlan plan = PlanOf(JobWith("{}", row.annotations), RuntimeWith(spec, row.runtime_annotations));
    EXPECT_EQ(After(plan, "data"), row.data);
    EXPECT_EQ(After(plan, "model"), row.model);
    EXPECT_EQ(After(plan, "node"), row.node);
    EXPECT_EQ(After(plan, "side"), row.side);
  }
  EXPECT_THAT(Refusal(JobWith("{}", "{muster.dev/initializers: fast}"), RuntimeWith(kSteps)),
              HasSubstr("metadata.annotations.muster.dev/initializers: 'fast' is neither parallel nor sequential"));
}

TEST(Initializers, WithoutThemAllStepsBeginAtOnce) {
  EXPECT_TRUE(PlanOf(JobWith(), TrainerRuntime()).jobs[0].after.empty());
}

}  // namespace
}  // namespace muster::controller

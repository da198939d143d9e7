// SPDX-License-Identifier: Apache-2.0
// The numbers of Jobs and pods in a plan, and refused numbers.
#include "tests/controller/plan/planned.h"

namespace muster::controller {
namespace {

using ::testing::HasSubstr;

TEST(Counts, NumNodesGivesThePodsOfTheTrainer) {
  struct Row {
    std::string trainer, policy;
    int pods;
    std::string nnodes;
  };
  for (const Row& row : std::vector<Row>{
           {"{}", "{torch: {}}", 1, "1"},
           {"{}", "{numNodes: 3, torch: {}}", 3, "3"},
           {"{trainer: {numNodes: 2}}", "{numNodes: 3, torch: {}}", 2, "2"},
           {"{trainer: {image: i}}", "{numNodes: 3, torch: {}}", 3, "3"},
           {"{}", "{torch: {elasticPolicy: {minNodes: 1, maxNodes: 4}}}", 4, "1:4"},
           {"{trainer: {numNodes: 2}}", "{torch: {elasticPolicy: {minNodes: 1, maxNodes: 4}}}", 2, "1:4"},
           {"{trainer: {numNodes: 2}}", "{torch: {elasticPolicy: {maxRestarts: 1}}}", 2, "1:2"},
           {"{}", "{torch: {elasticPolicy: {minNodes: 2}}}", 2, "2:2"},
           {"{trainer: {numNodes: 5}}", "{numNodes: 3}", 5, "-"},
           {"{}", "{numNodes: 3}", 3, "-"},
       }) {
    SCOPED_TRACE(row.trainer + " " + row.policy);
    const TrainJobPlan plan = PlanOf(JobWith(row.trainer), TrainerRuntime({.policy = row.policy}));
    ASSERT_EQ(plan.jobs.size(), 1);
    EXPECT_EQ(plan.jobs[0].pods, row.pods);
    EXPECT_EQ(At(plan.jobs[0].Object(), "/spec/parallelism"), row.pods);
    EXPECT_EQ(At(plan.jobs[0].Object(), "/spec/completions"), row.pods);
    EXPECT_EQ(EnvOf(ContainerOf(plan.jobs[0]), "PET_NNODES"), row.nnodes);
  }
}

TEST(Counts, ParallelismCountsWhereNobodySaysHowManyNodes) {
  struct Row {
    std::string policy, job;
    int pods;
  };
  for (const Row& row : std::vector<Row>{{"", "{parallelism: 3}", 3},
                                         {"", "{}", 1},
                                         {"", "{parallelism: 0}", 1},
                                         {"{torch: {}}", "{parallelism: 3}", 1}}) {
    SCOPED_TRACE(row.policy + row.job);
    EXPECT_EQ(PlanOf(JobWith(), TrainerRuntime({.policy = row.policy, .job = row.job})).jobs[0].pods, row.pods);
  }
}

constexpr char kThreeJobs[] = R"(
mlPolicy: {numNodes: 2, torch: {}}
template:
  spec:
    replicatedJobs:
    - name: side
      replicas: 3
      template: {spec: {parallelism: 4, template: {spec: {containers: [{name: c, image: i}]}}}}
    - name: node
      replicas: 5
      template:
        metadata: {labels: {trainer.kubeflow.org/trainjob-ancestor-step: trainer}}
        spec: {template: {spec: {containers: [{name: node, image: i, command: [x]}]}}}
)";

TEST(Counts, StepsHaveOneReplicaAndOthersTheirOwn) {
  const TrainJobPlan plan = PlanOf(JobWith(), RuntimeWith(kThreeJobs));
  ASSERT_EQ(plan.jobs.size(), 4);
  for (int index = 0; index < 3; ++index) {
    EXPECT_EQ(plan.jobs[index].name, "train-side-" + std::to_string(index));
    EXPECT_EQ(plan.jobs[index].index, index);
    EXPECT_EQ(plan.jobs[index].pods, 4);
    EXPECT_FALSE(plan.jobs[index].agent);
  }
  EXPECT_EQ(plan.jobs[3].name, "train-node-0");
  EXPECT_TRUE(plan.jobs[3].agent);
}

TEST(Counts, WhatCannotBePlannedIsRefused) {
  struct Row {
    std::string spec, policy, message;
  };
  for (const Row& row : std::vector<Row>{
           {"{}", "{flux: {}}", "runtime 'runtime': spec.mlPolicy.flux: Flux is not served: its brokers"},
           {"{trainer: {numNodes: 9}}", "{torch: {elasticPolicy: {minNodes: 1, maxNodes: 4}}}",
            "spec.trainer.numNodes: 9 is not between minNodes 1 and maxNodes 4"},
       }) {
    SCOPED_TRACE(row.policy);
    EXPECT_THAT(Refusal(JobWith(row.spec), TrainerRuntime({.policy = row.policy})), HasSubstr(row.message));
  }
  EXPECT_THAT(Refusal(JobWith(), RuntimeWith(Replaced(kThreeJobs, "replicas: 3", "replicas: 2000000000"))),
              HasSubstr("their replicas are 2000000001 Jobs together, and 10000 are the most"));
  EXPECT_THAT(Refusal(JobWith(), RuntimeWith(Replaced(kThreeJobs, "name: node, image", "name: other, image"))),
              HasSubstr("must contain the required container for the ancestor: trainer: its name is node; the job has: "
                        "other"));
  EXPECT_THAT(Refusal(JobWith(), TrainerRuntime({.set = "{network: {enableDNSHostnames: false}}"})),
              HasSubstr("find each other by their host names; leave it out"));
  EXPECT_THAT(Refusal(JobWith(), TrainerRuntime({.set = "{coordinator: {replicatedJob: node, podIndex: 1}}"})),
              HasSubstr("spec.template.spec.coordinator.podIndex: 1 is too large: job 'node' has 1, counted from 0"));
}

TEST(Counts, ATrainerThatNoJobTakesIsSaid) {
  const TrainJobPlan plan =
      PlanOf(JobWith("{trainer: {image: i}}"),
             RuntimeWith("{template: {spec: {replicatedJobs: [{name: a, template: {spec: {template: {spec: "
                         "{containers: [{name: c, image: i}]}}}}}]}}}"));
  ASSERT_EQ(plan.notices.size(), 1);
  EXPECT_EQ(plan.notices[0].reason, "TrainerIgnored");
  EXPECT_EQ(plan.max_restarts, 0);
}

}  // namespace
}  // namespace muster::controller

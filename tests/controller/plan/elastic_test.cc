// SPDX-License-Identifier: Apache-2.0
#include "controller/plan/elastic.h"

#include <gtest/gtest.h>

#include "base/text.h"
#include "controller/plan/pod_fields.h"
#include "tests/controller/plan/planned.h"

namespace muster::controller {
namespace {

Runtime Elastic(const std::string& more = "") {
  return TrainerRuntime({.policy = fmt::format("{{torch: {{elasticPolicy: {{minNodes: 1, maxNodes: 4{}}}}}}}", more),
                         .container = "{command: [torchrun, train.py]}"});
}

const Json* ObjectOf(const TrainJobPlan& plan, std::string_view kind) {
  for (const PlannedObject& planned : plan.objects) {
    if (planned.object["kind"] == kind) return &planned.object;
  }
  return nullptr;
}

TEST(Elastic, ThePodsHearHowManyTheyAreMeantToBe) {
  const TrainJobPlan plan = PlanOf(JobWith("{trainer: {numNodes: 2}}"), Elastic());
  const PlannedJob& job = plan.jobs.at(0);
  EXPECT_TRUE(job.scales);
  EXPECT_EQ(job.pods, 2);
  const Json container = ContainerOf(job);
  EXPECT_EQ(EnvOf(container, "PET_NNODES"), "1:4");
  EXPECT_EQ(EnvOf(container, "MUSTER_NODES_FILE"), "/muster-nodes/nodes");
  EXPECT_EQ(*FindNamed(container, "volumeMounts", "muster-nodes"),
            YamlOf("{name: muster-nodes, mountPath: /muster-nodes, readOnly: true}"));
  EXPECT_EQ(At(job.Object(), "/spec/template/metadata/annotations/muster.dev~1nodes"), "2");
  EXPECT_EQ(*FindNamed(job.Object()["spec"]["template"]["spec"], "volumes", "muster-nodes"),
            YamlOf("{name: muster-nodes, downwardAPI: {items: [{path: nodes, fieldRef: {fieldPath: "
                   "\"metadata.annotations['muster.dev/nodes']\"}}]}}"));
}

TEST(Elastic, WithoutTheAgentOrWithAFixedNumberNothingIsTold) {
  struct {
    const char* what;
    TrainJobPlan plan;
    bool scales;
  } const rows[] = {
      {"a fixed number",
       PlanOf(JobWith("{trainer: {numNodes: 2}}"), TrainerRuntime({.container = "{command: [torchrun]}"})), false},
      {"no agent", PlanOf(JobWith("{trainer: {numNodes: 2}}", "{muster.dev/agent: \"off\"}"), Elastic()), true},
      {"its own file", PlanOf(JobWith("{trainer: {env: [{name: MUSTER_NODES_FILE, value: /mine}]}}"), Elastic()), true},
  };
  for (const auto& row : rows) {
    EXPECT_EQ(row.plan.jobs.at(0).scales, row.scales) << row.what;
    EXPECT_EQ(At(row.plan.jobs.at(0).Object(), "/spec/template/metadata/annotations/muster.dev~1nodes"), Json())
        << row.what;
  }
}

TEST(Elastic, AnAutoscalerWhereThereAreMetrics) {
  const TrainJobPlan plan = PlanOf(JobWith(), Elastic(", metrics: [{type: Pods, pods: {metric: {name: queue}}}]"));
  const Json* scaler = ObjectOf(plan, "HorizontalPodAutoscaler");
  ASSERT_NE(scaler, nullptr);
  EXPECT_EQ(At(*scaler, "/apiVersion"), "autoscaling/v2");
  EXPECT_EQ(At(*scaler, "/metadata/name"), "train");
  EXPECT_EQ(At(*scaler, "/metadata/ownerReferences/0/kind"), "TrainJob");
  EXPECT_EQ(At(*scaler, "/spec"),
            YamlOf("{scaleTargetRef: {apiVersion: trainer.kubeflow.org/v1alpha1, kind: TrainJob, name: train}, "
                   "minReplicas: 1, maxReplicas: 4, metrics: [{type: Pods, pods: {metric: {name: queue}}}]}"));
  EXPECT_EQ(ObjectOf(PlanOf(JobWith(), Elastic()), "HorizontalPodAutoscaler"), nullptr);
}

TEST(Elastic, NotWhereKueueHasAdmittedANumberOfPods) {
  TrainJob job = JobWith();
  job.meta.labels[kQueueLabel] = "team";
  const TrainJobPlan plan = PlanOf(job, Elastic(", metrics: [{type: Pods}]"));
  EXPECT_FALSE(plan.jobs.at(0).scales);
  EXPECT_EQ(ObjectOf(plan, "HorizontalPodAutoscaler"), nullptr);
  ASSERT_EQ(plan.notices.size(), 1);
  EXPECT_EQ(plan.notices[0].reason, "ElasticMetricsIgnored");
}

}  // namespace
}  // namespace muster::controller

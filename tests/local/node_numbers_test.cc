// SPDX-License-Identifier: Apache-2.0
#include "local/node_numbers.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/text.h"

namespace muster::local {

using namespace controller;

namespace {

NodeNumbers NumbersOf(const std::string& job) {
  constexpr char kRuntimes[] = R"(
apiVersion: trainer.kubeflow.org/v1alpha1
kind: ClusterTrainingRuntime
metadata: {name: torch, labels: {trainer.kubeflow.org/framework: torch}}
spec:
  mlPolicy: {numNodes: 2, torch: {numProcPerNode: 3}}
  template: {spec: {replicatedJobs: [
    {name: data, template: {spec: {template: {spec: {containers: [{name: data, image: i}]}}}}},
    {name: node, template: {metadata: {labels: {trainer.kubeflow.org/trainjob-ancestor-step: trainer}},
     spec: {template: {spec: {containers: [{name: node, image: i}]}}}}}]}}
---
apiVersion: trainer.kubeflow.org/v1alpha1
kind: ClusterTrainingRuntime
metadata: {name: mpi, labels: {trainer.kubeflow.org/framework: mpi}}
spec:
  mlPolicy: {numNodes: 3, mpi: {mpiImplementation: OpenMPI, runLauncherAsNode: true}}
  template: {spec: {replicatedJobs: [
    {name: launcher, template: {metadata: {labels: {trainer.kubeflow.org/trainjob-ancestor-step: trainer}},
     spec: {template: {spec: {containers: [{name: node, image: i}]}}}}},
    {name: node, template: {spec: {template: {spec: {containers: [{name: node, image: i}]}}}}}]}}
)";
  const auto planned = PlanFiles({{.name = "job", .text = job}, {.name = "runtimes", .text = kRuntimes}}, {});
  if (!planned.ok()) ADD_FAILURE() << Message(planned.status());
  return NodeNumbers(planned.value_or(PlannedFiles()));
}

std::string TrainJob(std::string_view runtime, std::string_view command) {
  return fmt::format(
      "{{apiVersion: trainer.kubeflow.org/v1alpha1, kind: TrainJob, metadata: {{name: a}}, spec: "
      "{{runtimeRef: {{name: {}}}, trainer: {{command: {}}}}}}}",
      runtime, command);
}

Json PodOf(std::string_view job, std::string_view index) {
  return {{"metadata",
           {{"labels", {{"batch.kubernetes.io/job-name", job}, {"batch.kubernetes.io/job-completion-index", index}}}}}};
}

TEST(NodeNumbers, TheLauncherOfMpiIsOneOfThem) {
  const NodeNumbers numbers = NumbersOf(TrainJob("mpi", "[mpirun, a]"));
  EXPECT_EQ(numbers.count(), 3);
  EXPECT_EQ(numbers.Of(PodOf("a-launcher-0", "0")), 0);
  EXPECT_EQ(numbers.Of(PodOf("a-node-0", "0")), 1);
  EXPECT_EQ(numbers.Of(PodOf("a-node-0", "1")), 2);
}

TEST(NodeNumbers, OtherPodsHaveNone) {
  const NodeNumbers numbers = NumbersOf(TrainJob("torch", "[torchrun, a.py]"));
  EXPECT_EQ(numbers.count(), 2);
  EXPECT_EQ(numbers.Of(PodOf("a-node-0", "1")), 1);
  EXPECT_EQ(numbers.Of(PodOf("a-data-0", "0")), -1);
  EXPECT_EQ(numbers.Of(Json::object()), -1);
}

TEST(NodeNumbers, ADrillReachesOnlyNodesAndRanksOfTheJob) {
  constexpr char kReplicas[] =
      "template: {spec: {containers: [{name: pytorch, image: i, command: [torchrun, a.py]}]}}}";
  const std::string pytorch = fmt::format(
      "{{apiVersion: kubeflow.org/v1, kind: PyTorchJob, metadata: {{name: a}}, spec: {{nprocPerNode: \"2\", "
      "pytorchReplicaSpecs: {{Master: {{replicas: 1, {0}, Worker: {{replicas: 2, {0}}}}}}}",
      kReplicas);
  const struct {
    std::string job;
    const char *drill, *said;  // empty: it may be
  } rows[] = {
      {TrainJob("torch", "[torchrun, a.py]"), "node:1@1s", ""},
      {TrainJob("torch", "[torchrun, a.py]"), "node:2@1s",
       "--kill 'node:2@1s': there is no node 2: the job's nodes are 0 to 1"},
      {TrainJob("torch", "[torchrun, a.py]"), "rank:5@x", ""},
      {TrainJob("torch", "[torchrun, a.py]"), "rank:6@x",
       "--kill 'rank:6@x': there is no rank 6: the job's ranks are 0 to 5"},
      {TrainJob("torch", "[torchrun, --nproc-per-node=8, a.py]"), "rank:6@x", ""},
      {TrainJob("torch", "[sh, train.sh]"), "rank:6@x", ""},
      {TrainJob("mpi", "[mpirun, a]"), "rank:6@x", ""},
      {TrainJob("mpi", "[mpirun, a]"), "node:3@x", "--kill 'node:3@x': there is no node 3: the job's nodes are 0 to 2"},
      {pytorch, "node:2@x", ""},
      {pytorch, "node:3@x", "--kill 'node:3@x': there is no node 3: the job's nodes are 0 to 2"},
  };
  for (const auto& row : rows) {
    EXPECT_EQ(Message(NumbersOf(row.job).Check(*ParseDrill(row.drill))), row.said) << row.job;
  }
}

}  // namespace
}  // namespace muster::local

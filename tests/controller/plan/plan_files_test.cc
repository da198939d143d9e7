// SPDX-License-Identifier: Apache-2.0
// Plans of files with jobs and runtimes, and the messages for wrong ones.
#include "controller/plan/plan_files.h"

#include "tests/controller/plan/planned.h"

namespace muster::controller {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

constexpr char kJob[] = R"(# a job
apiVersion: trainer.kubeflow.org/v1alpha1
kind: TrainJob
metadata:
  name: train
spec:
  suspend: true
  runtimeRef: {name: torch}
  trainer:
    numNodes: 2
)";
constexpr char kRuntime[] = R"(apiVersion: v1
kind: ConfigMap
metadata: {name: other}
---
apiVersion: trainer.kubeflow.org/v1alpha1
kind: ClusterTrainingRuntime
metadata: {name: torch}
spec:
  mlPolicy:
    torch: {}
  template:
    spec:
      replicatedJobs:
      - name: node
        template:
          metadata: {labels: {trainer.kubeflow.org/trainjob-ancestor-step: trainer}}
          spec: {template: {spec: {containers: [{name: node, image: i, command: [x]}]}}}
)";

std::string Wrong(const std::string& job, const std::string& runtime) {
  const auto planned = PlanFiles({{"job.yaml", job}, {"runtime.yaml", runtime}}, {});
  EXPECT_TRUE(absl::IsInvalidArgument(planned.status())) << planned.status();
  return std::string(Message(planned.status()));
}

TEST(PlanFiles, NameUnknownFieldsOfARuntimeOnce) {
  std::string runtime = kRuntime, other_job = kJob;
  runtime.replace(runtime.find("command: [x]"), 7, "comand");
  other_job.replace(other_job.find("name: train"), 11, "name: other");
  const auto planned = PlanFiles({{"job.yaml", kJob}, {"other.yaml", other_job}, {"runtime.yaml", runtime}}, {});
  ASSERT_TRUE(planned.ok()) << planned.status();
  EXPECT_EQ(planned->jobs.size(), 2);
  EXPECT_THAT(planned->remarks,
              testing::Contains(
                  HasSubstr("containers[0].comand: is not a field of a ClusterTrainingRuntime: it is ignored; the "
                            "nearest is 'command'"))
                  .Times(1));
}

TEST(PlanFiles, GiveTheObjectsOfTheController) {
  const auto planned = PlanFiles({{"job.yaml", kJob}, {"runtime.yaml", kRuntime}}, {});
  ASSERT_TRUE(planned.ok()) << planned.status();
  ASSERT_EQ(planned->jobs.size(), 1);
  EXPECT_THAT(planned->remarks, ElementsAre("runtime.yaml:2: ConfigMap 'other' is not a part of the plan"));
  EXPECT_THAT(PlanFiles({{"job.yaml", kJob}, {"runtime.yaml", kRuntime}}, {}, {.beside = {"ConfigMap"}})->remarks,
              ElementsAre());
  const auto objects = PlannedObjects(planned->jobs[0]);
  ASSERT_EQ(objects.size(), 4);
  EXPECT_EQ(At(objects[0], "/kind"), "Service");
  EXPECT_EQ(At(objects[1], "/metadata/name"), "train-runtime-snapshot");
  EXPECT_EQ(At(objects[2], "/metadata/name"), "train-token");
  EXPECT_EQ(At(objects[3], "/metadata/name"), "train-node-0");
  EXPECT_EQ(At(objects[3], "/spec/suspend"), true);
  const auto documents = ReadYaml(ObjectsAsYaml(objects));
  ASSERT_TRUE(documents.ok());
  ASSERT_EQ(documents->size(), 4);
  EXPECT_EQ((*documents)[3].object, objects[3]);
  const auto list = ReadJson(ObjectsAsJson(objects), 100);
  ASSERT_TRUE(list.ok());
  EXPECT_EQ(At(*list, "/kind"), "List");
  EXPECT_EQ(At(*list, "/items").size(), 4);
}

TEST(PlanFiles, SayWhereTheyAreWrong) {
  struct Row {
    std::string from, to;  // a replacement in the job's file, else in the runtime's
    std::string message;
  };
  for (const Row& row : std::vector<Row>{
           {"numNodes: 2", "numNodes: many", "job.yaml:10: spec.trainer.numNodes: 'many'"},
           {"numNodes: 2", "env: [{name: PET_NNODES, value: \"1\"}]", "job.yaml:10: spec.trainer.env: must not have"},
           {"{name: torch}", "{name: other}",
            "job.yaml:8: spec.runtimeRef: ClusterTrainingRuntime 'other' is in none of the files; they have: "
            "ClusterTrainingRuntime 'torch'"},
           {"{name: torch}", "{name: torch, apiGroup: example.com}",
            "job.yaml:8: spec.runtimeRef: unsupported runtime: ClusterTrainingRuntime.example.com; use"},
           {"kind: TrainJob", "kind: MPIJob",
            "kind: MPIJob is not read; write a TrainJob of the runtime deepspeed-distributed"},
           {"kind: TrainJob", "kind: JobSet",
            "job.yaml, runtime.yaml: there is no TrainJob and no PyTorchJob to plan, only ClusterTrainingRuntime "
            "'torch', "
            "JobSet 'train', ConfigMap 'other'; give its file with -f"},
           {"kind: TrainJob", "kin: TrainJob", "job.yaml:2: kind: it is missing"},
           {"spec:", "spec: [", "job.yaml:8:13: "},
           {"torch: {}", "flux: {}", "runtime.yaml:10: spec.mlPolicy.flux: Flux is not served"},
           {"name: node, image", "name: other, image", "runtime.yaml:"},
           {"template:\n    spec:", "templat:\n    spec:", "runtime.yaml:8: spec.template: it is missing"},
       }) {
    SCOPED_TRACE(row.to);
    const bool in_job = std::string(kJob).find(row.from) != std::string::npos;
    EXPECT_THAT(
        in_job ? Wrong(Replaced(kJob, row.from, row.to), kRuntime) : Wrong(kJob, Replaced(kRuntime, row.from, row.to)),
        HasSubstr(row.message));
  }
}

TEST(PlanFiles, FieldsOfTheOldShapeAreRemarks) {
  const auto planned = PlanFiles(
      {{"job.yaml", Replaced(kJob, "  trainer:", "  labels: {a: b}\n  trainer:")}, {"runtime.yaml", kRuntime}}, {});
  ASSERT_TRUE(planned.ok());
  ASSERT_EQ(planned->remarks.size(), 2);
  EXPECT_THAT(planned->remarks[1], HasSubstr("job.yaml:9: spec.labels is of v2.1"));
}

TEST(PlanFiles, NoticesAreRemarks) {
  const auto planned = PlanFiles({{"job.yaml", kJob}, {"runtime.yaml", Replaced(kRuntime, ", command: [x]", "")}}, {});
  ASSERT_TRUE(planned.ok());
  ASSERT_EQ(planned->remarks.size(), 2);
  EXPECT_THAT(planned->remarks[1], HasSubstr("job.yaml:2: runtime 'torch': job 'node' runs without the agent"));
}

constexpr char kPyTorchJob[] = R"(apiVersion: kubeflow.org/v1
kind: PyTorchJob
metadata:
  name: digits
spec:
  pytorchReplicaSpecs:
    Master:
      replicas: 1
      template: {spec: {containers: [{name: pytorch, image: i, command: [x]}]}}
    Worker:
      replicas: 2
      template:
        spec:
          containers:
          - {name: pytorch, image: i}
)";

TEST(PlanFiles, APyTorchJobGivesServicesAndPods) {
  const auto planned = PlanFiles({{"job.yaml", kPyTorchJob}}, {});
  ASSERT_TRUE(planned.ok()) << planned.status();
  EXPECT_TRUE(planned->jobs.empty());
  ASSERT_EQ(planned->pytorch_jobs.size(), 1);
  std::vector<std::string> made;
  for (const Json& object : PlannedObjects(*planned)) {
    made.push_back(At(object, "/kind").get<std::string>() + " " + At(object, "/metadata/name").get<std::string>());
  }
  EXPECT_THAT(made, ElementsAre("Secret digits-token", "Service digits-master-0", "Pod digits-master-0",
                                "Service digits-worker-0", "Pod digits-worker-0", "Service digits-worker-1",
                                "Pod digits-worker-1"));
  EXPECT_THAT(planned->remarks, ElementsAre(HasSubstr("job.yaml:10: spec.pytorchReplicaSpecs.Worker runs without the "
                                                      "agent")));
}

TEST(PlanFiles, TrainJobsAndPyTorchJobsStandSideBySide) {
  const auto planned = PlanFiles({{"a.yaml", kPyTorchJob}, {"b.yaml", kJob}, {"c.yaml", kRuntime}}, {});
  ASSERT_TRUE(planned.ok()) << planned.status();
  EXPECT_EQ(planned->jobs.size(), 1);
  EXPECT_EQ(planned->pytorch_jobs.size(), 1);
  EXPECT_EQ(PlannedObjects(*planned).size(),
            PlannedObjects(planned->jobs[0]).size() + PlannedObjects(planned->pytorch_jobs[0]).size());
}

TEST(PlanFiles, ASuspendedPyTorchJobIsARemark) {
  const auto planned = PlanFiles(
      {{"job.yaml", Replaced(kPyTorchJob, "spec:\n  pyt", "spec:\n  runPolicy: {suspend: true}\n  pyt")}}, {});
  ASSERT_TRUE(planned.ok()) << planned.status();
  EXPECT_THAT(planned->remarks.back(),
              HasSubstr("job.yaml:6: spec.runPolicy.suspend: pods and Services are made once"));
}

TEST(PlanFiles, SayWhereAPyTorchJobIsWrong) {
  struct Row {
    std::string from, to, message;
  };
  for (const Row& row : std::vector<Row>{
           {"replicas: 2", "replicas: many", "job.yaml:11: spec.pytorchReplicaSpecs.Worker.replicas: 'many'"},
           {"kubeflow.org/v1", "kubeflow.org/v2", "job.yaml:1: apiVersion: 'kubeflow.org/v2' is not kubeflow.org/v1"},
           {"name: digits", "name: " + std::string(60, 'a'), "job.yaml:4: metadata.name: "},
           {"  name: digits", "  name: digits\n  annotations: {muster.dev/restart: all}",
            "job.yaml:5: metadata.annotations.muster.dev/restart: 'all' is neither pod nor job"},
       }) {
    SCOPED_TRACE(row.to);
    const auto planned = PlanFiles({{"job.yaml", Replaced(kPyTorchJob, row.from, row.to)}}, {});
    EXPECT_TRUE(absl::IsInvalidArgument(planned.status()));
    EXPECT_THAT(std::string(Message(planned.status())), HasSubstr(row.message));
  }
}

}  // namespace
}  // namespace muster::controller

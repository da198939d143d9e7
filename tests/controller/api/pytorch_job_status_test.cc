// SPDX-License-Identifier: Apache-2.0
#include "controller/api/pytorch_job.h"
#include "tests/controller/api/yaml_of.h"

namespace muster::controller {
namespace {

WallTime At(int second) { return WallTime(std::chrono::seconds(1'700'000'000 + second)); }

PyTorchJobStatus Full() {
  PyTorchJobStatus status;
  status.conditions = {{"Created", true, "PyTorchJobCreated", "m", At(0), At(0)},
                       {"Running", false, "PyTorchJobRunning", "", At(2), At(1)},
                       {"Failed", true, "PyTorchJobFailed", "why", At(3), At(3)}};
  status.master = {.active = 1, .succeeded = 2, .failed = 3, .selector = "a=b"};
  status.worker = {.failed = 4};
  status.start_time = At(0);
  status.completion_time = At(3);
  status.message = "waits";
  status.attempt = 2;
  status.restarts = 5;
  status.failures = {{.time = At(1),
                      .pod = "train-worker-0",
                      .node = "n",
                      .reported_by = "train-master-0",
                      .pod_uid = "uid-1",
                      .container = "pytorch",
                      .rank = 1,
                      .node_rank = 1,
                      .exit_code = 137,
                      .signal = "SIGKILL",
                      .reason = "OOMKilled",
                      .message = "m",
                      .next_step = "see the log",
                      .origin = "uid-0"}};
  status.counted = {{"uid-1", 2}, {"uid-2", 0}};
  return status;
}

TEST(PyTorchJobStatus, ComesBack) {
  EXPECT_EQ(ReadPyTorchJobStatus(WritePyTorchJobStatus(Full())), Full());
  EXPECT_EQ(ReadPyTorchJobStatus(WritePyTorchJobStatus(PyTorchJobStatus())), PyTorchJobStatus());
}

TEST(PyTorchJobStatus, IsWrittenInTheFieldsOfTheApi) {
  EXPECT_EQ(WritePyTorchJobStatus(PyTorchJobStatus()),
            YamlOf("{conditions: [], replicaStatuses: {}, attempt: 0, restarts: 0}"));
  const Json written = WritePyTorchJobStatus(Full());
  EXPECT_EQ(written["conditions"][1],
            YamlOf("{type: Running, status: \"False\", reason: PyTorchJobRunning, message: \"\", "
                   "lastUpdateTime: \"2023-11-14T22:13:22Z\", lastTransitionTime: \"2023-11-14T22:13:21Z\"}"));
  EXPECT_EQ(written["conditions"].back()["type"], "Failed");
  EXPECT_EQ(written["replicaStatuses"], YamlOf("{Master: {active: 1, succeeded: 2, failed: 3, selector: a=b}, "
                                               "Worker: {active: 0, succeeded: 0, failed: 4}}"));
  EXPECT_EQ(written["startTime"], "2023-11-14T22:13:20Z");
  EXPECT_EQ(written["countedPods"], YamlOf("x: [{uid: uid-1, restarts: 2}, {uid: uid-2, restarts: 0}]")["x"]);
}

TEST(PyTorchJobStatus, OfTrainingOperator) {
  const PyTorchJobStatus status = ReadPyTorchJobStatus(YamlOf(R"(
conditions:
- {type: Created, status: "True", reason: PyTorchJobCreated, message: c, lastUpdateTime: "2023-11-14T22:13:20Z", lastTransitionTime: "2023-11-14T22:13:20Z"}
- {type: Running, status: "True", reason: PyTorchJobRunning, message: r, lastUpdateTime: "2023-11-14T22:13:22Z", lastTransitionTime: "2023-11-14T22:13:21Z"}
lastReconcileTime: "2023-11-14T22:13:23Z"
replicaStatuses:
  Master: {active: 1, selector: "training.kubeflow.org/job-name=a"}
  Worker: {}
  Chief: {active: 1}
startTime: "2023-11-14T22:13:20Z"
)"));
  EXPECT_EQ(status.conditions.size(), 2);
  EXPECT_TRUE(status.Is("Running"));
  EXPECT_EQ(status.Find("Running")->updated, At(2));
  EXPECT_EQ(status.Find("Running")->since, At(1));
  EXPECT_EQ(status.master, (ReplicaStatus{.active = 1, .selector = "training.kubeflow.org/job-name=a"}));
  EXPECT_EQ(status.worker, ReplicaStatus());
  EXPECT_EQ(status.start_time, At(0));
  EXPECT_FALSE(status.completion_time);
  EXPECT_FALSE(status.Finished());
}

TEST(PyTorchJobStatus, WhatIsMalformedCountsAsAbsent) {
  const PyTorchJobStatus none;
  for (const char* yaml : {
           "{}",
           "{conditions: 5, replicaStatuses: [], failures: x, countedPods: {}}",
           "{conditions: [5, {}, {type: A}, {type: A, status: true}, {type: [], status: \"True\"}]}",
           "{replicaStatuses: {Master: 5, Worker: [], master: {active: 1}}}",
           "{startTime: noon, completionTime: 5, message: {}}",
           "{attempt: -1, restarts: 1.5}",
           "{attempt: x, restarts: 99999999999}",
           "{failures: [5, null, []], countedPods: [5, null, {}, {uid: 5}, {uid: \"\", restarts: 2}]}",
       }) {
    EXPECT_EQ(ReadPyTorchJobStatus(YamlOf(yaml)), none) << yaml;
  }
  for (const Json& object : {Json(), Json(5), Json::array(), Json("text")}) {
    EXPECT_EQ(ReadPyTorchJobStatus(object), none);
  }
  const auto status = ReadPyTorchJobStatus(YamlOf(R"(
conditions:
- {type: Failed, status: "True", lastTransitionTime: never, lastUpdateTime: 5, reason: 5, message: []}
- {type: Failed, status: "False"}
replicaStatuses: {Worker: {active: -1, succeeded: 2, failed: x, selector: 5}}
countedPods: [{uid: u, restarts: -1}]
)"));
  EXPECT_EQ(status.conditions, (std::vector<JobCondition>{{.type = "Failed", .status = true}}));
  EXPECT_EQ(status.worker, (ReplicaStatus{.succeeded = 2}));
  EXPECT_EQ(status.counted, (std::vector<CountedPod>{{"u", 0}}));
}

TEST(PyTorchJobStatus, TheNewestFailuresStay) {
  PyTorchJobStatus status;
  for (int i = 0; i < 15; ++i) status.failures.push_back({.exit_code = i});
  const Json written = WritePyTorchJobStatus(status);
  ASSERT_EQ(written["failures"].size(), kMostFailures);
  EXPECT_EQ(ReadPyTorchJobStatus(written).failures.front().exit_code, 5);
  EXPECT_EQ(ReadPyTorchJobStatus(written).failures.back().exit_code, 14);
}

TEST(PyTorchJobStatus, IsFinishedBySucceededAndFailed) {
  const struct {
    const char* type;
    bool status, finished;
  } rows[] = {{"Succeeded", true, true}, {"Failed", true, true}, {"Failed", false, false}, {"Suspended", true, false}};
  for (const auto& row : rows) {
    PyTorchJobStatus status;
    status.conditions = {{.type = "Created", .status = true}, {.type = row.type, .status = row.status}};
    EXPECT_EQ(status.Finished(), row.finished) << row.type;
    EXPECT_EQ(status.Is(row.type), row.status) << row.type;
    EXPECT_EQ(status.Find(row.type), &status.conditions[1]);
  }
  EXPECT_EQ(PyTorchJobStatus().Find("Created"), nullptr);
}

TEST(PyTorchJobStatus, ByType) {
  PyTorchJobStatus status;
  status.Of(ReplicaType::kMaster) = ReplicaStatus{.active = 1};
  status.Of(ReplicaType::kWorker) = ReplicaStatus{.active = 2};
  EXPECT_EQ(status.master->active, 1);
  EXPECT_EQ(status.worker->active, 2);
}

}  // namespace
}  // namespace muster::controller

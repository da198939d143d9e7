// SPDX-License-Identifier: Apache-2.0
#include "controller/api/train_job.h"
#include "tests/controller/api/yaml_of.h"

namespace muster::controller {
namespace {

WallTime At(int second) { return WallTime(std::chrono::seconds(1'700'000'000 + second)); }

TrainJobStatus Full() {
  TrainJobStatus status;
  status.conditions = {{"Suspended", false, "Resumed", "TrainJob is resumed", At(1), 2},
                       {"Failed", true, "FailedJobs", "m", At(2), 0}};
  status.jobs = {{"node", 1, 2, 3, 4, 5}, {"launcher"}};
  status.state = "Failed";
  status.reason = "OOMKilled";
  status.message = "why";
  status.start_time = At(0);
  status.completion_time = At(3);
  status.nodes = 4;
  status.ready_nodes = 3;
  status.attempt = 2;
  status.restarts = 1;
  status.failures = {{.time = At(1),
                      .pod = "p",
                      .job = "j",
                      .node = "n",
                      .reported_by = "q",
                      .container = "c",
                      .rank = 0,
                      .node_rank = 7,
                      .exit_code = 137,
                      .signal = "SIGKILL",
                      .oom = true,
                      .reason = "OOMKilled",
                      .message = "m",
                      .next_step = "see the log",
                      .counted = false,
                      .origin = "n 1 2"},
                     {.time = At(2), .exit_code = -1}};
  return status;
}

TEST(TrainJobStatus, ComesBack) {
  EXPECT_EQ(ReadTrainJobStatus(WriteTrainJobStatus(Full())), Full());
  EXPECT_EQ(ReadTrainJobStatus(WriteTrainJobStatus(TrainJobStatus())), TrainJobStatus());
}

TEST(TrainJobStatus, FieldsAndConditionsOfOthersAreLeftOut) {
  const Json object = YamlOf(R"(
conditions: [{type: example.com/Checked, status: "True"}, {type: Complete, status: "True"}]
trainerStatus: {progressPercentage: 5}
later: 1
)");
  TrainJobStatus own;
  own.conditions = {{.type = "Complete", .status = true}};
  EXPECT_EQ(ReadTrainJobStatus(object), own);
  EXPECT_EQ(WriteTrainJobStatus(ReadTrainJobStatus(object)), WriteTrainJobStatus(own));
}

TEST(TrainJobStatus, CountersAreAlwaysThere) {
  EXPECT_EQ(WriteTrainJobStatus(TrainJobStatus()),
            YamlOf("{conditions: [], jobsStatus: [], nodes: 0, readyNodes: 0, attempt: 0, restarts: 0}"));
  TrainJobStatus status;
  status.jobs = {{"node"}};
  EXPECT_EQ(WriteTrainJobStatus(status)["jobsStatus"],
            YamlOf("x: [{name: node, ready: 0, succeeded: 0, failed: 0, active: 0, suspended: 0}]")["x"]);
}

TEST(TrainJobStatus, APodWithoutAnEndHasNoExitCode) {
  TrainJobStatus status;
  status.failures = {{.time = At(1), .pod = "p", .reason = "Evicted"}};
  EXPECT_EQ(WriteTrainJobStatus(status)["failures"],
            YamlOf("x: [{time: \"2023-11-14T22:13:21Z\", pod: p, reason: Evicted, counted: true}]")["x"]);
  EXPECT_EQ(ReadTrainJobStatus(WriteTrainJobStatus(status)), status);
}

TEST(TrainJobStatus, TimesAreWholeSeconds) {
  TrainJobStatus status;
  status.start_time = At(0) + std::chrono::microseconds(999'999);
  EXPECT_EQ(WriteTrainJobStatus(status)["startTime"], "2023-11-14T22:13:20Z");
  EXPECT_EQ(ReadTrainJobStatus(WriteTrainJobStatus(status)).start_time, At(0));
}

TEST(TrainJobStatus, TheNewestFailuresStay) {
  TrainJobStatus status;
  for (int i = 0; i < 15; ++i) status.failures.push_back({.exit_code = i});
  const Json written = WriteTrainJobStatus(status);
  ASSERT_EQ(written["failures"].size(), kMostFailures);
  EXPECT_EQ(written["failures"][0]["exitCode"], 5);
  EXPECT_EQ(ReadTrainJobStatus(written).failures.back().exit_code, 14);
}

TEST(TrainJobStatus, WhatIsMalformedCountsAsAbsent) {
  const TrainJobStatus none;
  for (const char* yaml : {
           "{}",
           "{conditions: 5, jobsStatus: {}, failures: x}",
           "{conditions: [5, {}, {type: A}, {type: A, status: Unknown}, {type: [], status: \"True\"}]}",
           "{jobsStatus: [5, {}, {name: 5}]}",
           "{state: 5, reason: [], message: {}, startTime: noon, completionTime: 5}",
           "{nodes: -1, readyNodes: x, attempt: 1.5, restarts: 99999999999}",
           "{failures: [5, null, []], trainerStatus: null}",
       }) {
    EXPECT_EQ(ReadTrainJobStatus(YamlOf(yaml)), none) << yaml;
  }
  EXPECT_EQ(ReadTrainJobStatus(Json()), none);
  EXPECT_EQ(ReadTrainJobStatus(Json(5)), none);

  const auto status = ReadTrainJobStatus(YamlOf(R"(
conditions:
- {type: Complete, status: "True", lastTransitionTime: never, observedGeneration: x, reason: 5}
- {type: Complete, status: "False"}
jobsStatus: [{name: node, ready: x, active: 2}]
failures: [{exitCode: x, rank: -1, oom: 5, counted: 5}]
)"));
  ASSERT_EQ(status.conditions.size(), 1);
  EXPECT_EQ(status.conditions[0], (Condition{.type = "Complete", .status = true}));
  EXPECT_EQ(status.jobs, (std::vector<JobsStatus>{{.name = "node", .active = 2}}));
  EXPECT_EQ(status.failures, (std::vector<Failure>{Failure()}));
}

TEST(TrainJobStatus, IsFinishedByCompleteAndFailed) {
  const struct {
    const char* type;
    bool status, finished;
  } rows[] = {{"Complete", true, true}, {"Failed", true, true}, {"Failed", false, false}, {"Suspended", true, false}};
  for (const auto& row : rows) {
    TrainJobStatus status;
    status.conditions = {{.type = "Other"}, {.type = row.type, .status = row.status}};
    EXPECT_EQ(status.Finished(), row.finished) << row.type;
    EXPECT_EQ(status.Find(row.type), &status.conditions[1]);
  }
  EXPECT_EQ(TrainJobStatus().Find("Complete"), nullptr);
}

}  // namespace
}  // namespace muster::controller

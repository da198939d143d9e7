// SPDX-License-Identifier: Apache-2.0
#include "local/state/run_record.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/iso_time.h"
#include "local/state/job_table.h"

namespace muster::local {
namespace {

using testing::HasSubstr;

WallTime At(const char* text) { return *ParseWallTime(text); }

RunRecord Made() {
  RunRecord record{.kind = "TrainJob", .name = "hello", .files = {"/a/job.yaml"}, .pid = 12, .pid_started = 3456};
  record.begun = At("2026-11-27T10:00:00.000001Z");
  record.state = "Restarting";
  record.restarts = 1;
  record.budget = 3;
  record.pods = {{.name = "hello-node-0-0-a",
                  .host = "hello-node-0-0",
                  .address = "127.0.1.2",
                  .node_rank = 0,
                  .containers = {"node"}},
                 {.name = "hello-data-0", .host = "hello-data-0", .containers = {"wait", "data"}}};
  record.pods[0].begun = record.begun;
  record.pods[0].ready = true;
  record.pods[1].begun = record.begun;
  record.pods[1].ended = At("2026-11-27T10:00:09Z");
  record.pods[1].exit_code = 1;
  record.drills = {{At("2026-11-27T10:00:05Z"), "rank:3@epoch 4", "SIGKILL to rank 3 on hello-node-0-1"}};
  return record;
}

TEST(RunRecord, IsReadAsItWasWritten) {
  RunRecord record = Made();
  EXPECT_EQ(*ParseRunRecord(ToJson(record)), record);
  record.ended = At("2026-11-27T10:01:00Z");
  record.exit_code = 143;
  record.message = "bytes that are no UTF-8: \xEF\xBF\xBD";
  record.detached = true;
  EXPECT_EQ(*ParseRunRecord(ToJson(record)), record);
}

TEST(RunRecord, TheNewestPodsAreKept) {
  RunRecord record = Made();
  const PodRecord pod = record.pods[0];
  record.pods.assign(kMostPodRecords + 1, pod);
  record.pods.front().name = "oldest";
  record.pods.back().name = "newest";
  const auto read = ParseRunRecord(ToJson(record));
  ASSERT_EQ(read->pods.size(), kMostPodRecords);
  EXPECT_EQ(read->pods.front().name, pod.name);
  EXPECT_EQ(read->pods.back().name, "newest");
}

TEST(RunRecord, WhatIsWrongIsSaid) {
  const struct {
    const char *text, *said;
  } rows[] = {
      {"", "not JSON"},
      {"[]", "not an object"},
      {"{}", "'kind' is not there"},
      {R"({"kind":1,"name":"a","pid":1,"begun":"2026-11-27T10:00:00Z"})", "'kind' is not a text"},
      {R"({"kind":"a","name":"a","pid":0,"begun":"2026-11-27T10:00:00Z"})", "'pid' is not a whole number"},
      {R"({"kind":"a","name":"a","pid":1,"begun":"today"})", "'begun' is not a time"},
      {R"({"kind":"a","name":"a","pid":1,"begun":"2026-11-27T10:00:00Z","exit_code":256})", "'exit_code'"},
      {R"({"kind":"a","name":"a","pid":1,"begun":"2026-11-27T10:00:00Z","pods":{}})", "'pods' is not a list"},
      {R"({"kind":"a","name":"a","pid":1,"begun":"2026-11-27T10:00:00Z","pods":[1]})", "pods[0]: it is not an object"},
      {R"({"kind":"a","name":"a","pid":1,"begun":"2026-11-27T10:00:00Z",
          "pods":[{"name":"../x","host":"a","begun":"2026-11-27T10:00:00Z"}]})",
       "pods[0]: 'name' is not the name of a pod"},
      {R"({"kind":"a","name":"a","pid":1,"begun":"2026-11-27T10:00:00Z",
          "pods":[{"name":"x","host":"a","begun":"2026-11-27T10:00:00Z","containers":["a/b"]}]})",
       "pods[0]: 'containers' is not a list of names"},
  };
  for (const auto& row : rows) {
    const auto record = ParseRunRecord(row.text);
    ASSERT_FALSE(record.ok()) << row.text;
    EXPECT_THAT(std::string(Message(record.status())), HasSubstr(row.said)) << row.text;
  }
}

TEST(JobTable, HowLongAgo) {
  using std::chrono::seconds;
  const WallTime now = At("2026-11-27T10:00:00Z");
  const std::pair<int, const char*> rows[] = {{-5, "0 s"},       {0, "0 s"},    {119, "119 s"},  {120, "2 min"},
                                              {7199, "119 min"}, {7200, "2 h"}, {172'800, "2 d"}};
  for (const auto& [age, text] : rows) EXPECT_EQ(Ago(now - seconds(age), now), text);
}

TEST(JobTable, ALineForEachJob) {
  const WallTime now = At("2026-11-27T10:00:30Z");
  RunRecord ended = Made();
  ended.ended = At("2026-11-27T10:00:20Z");
  ended.state = "Failed";
  ended.exit_code = 137;
  RunRecord begins = Made();
  begins.state = "";
  begins.pods.clear();
  const std::vector<FoundJob> jobs = {{.name = "runs", .runs = true, .record = Made()},
                                      {.name = "begins", .runs = true, .record = begins},
                                      {.name = "gone", .runs = false, .record = Made()},
                                      {.name = "ended", .runs = false, .record = ended},
                                      {.name = "new", .runs = true, .record = absl::NotFoundError("none")},
                                      {.name = "old", .runs = false, .record = absl::NotFoundError("none")},
                                      {.name = "broken", .runs = false, .record = absl::InvalidArgumentError("a: no")}};
  const ProgressByJob progress = {{"runs", {.position = 420, .end = 1000, .left = std::chrono::seconds(200)}}};
  EXPECT_EQ(JobTable(jobs, progress, now),
            "JOB     KIND      STATE       SINCE  NODES  PROGRESS  LEFT   RESTARTS  CODE\n"
            "runs    TrainJob  Restarting  29 s   1/1    42%       3 min  1         -\n"
            "begins  TrainJob  Starting    29 s   0/0    -         -      1         -\n"
            "gone    TrainJob  Lost        29 s   1      -         -      1         -\n"
            "ended   TrainJob  Failed      10 s   1      -         -      1         137\n"
            "new     -         Starting    -      -      -         -      -         -\n"
            "old     -         -           -      -      -         -      -         -\n"
            "broken  -         a: no\n");
  const Json json = JobsAsJson(jobs, progress);
  EXPECT_EQ(json[0]["training"],
            (Json{{"rank", 0}, {"unit", "steps"}, {"position", 420.0}, {"end", 1000.0}, {"left_seconds", 200.0}}));
  EXPECT_FALSE(json[1].contains("training"));
}

}  // namespace
}  // namespace muster::local

// SPDX-License-Identifier: Apache-2.0
#include "agent/report/attempt_record.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>

#include "agent/report/attempt_history.h"

namespace muster::agent {
namespace {

AttemptRecord TwoWorkers() {
  AttemptRecord record;
  record.run_id = "job";
  record.attempt = 3;
  record.assignment.id = {2, 3};
  record.assignment.seat.node.name = "node-1";
  record.assignment.seat.node.slots = 2;
  record.assignment.seat.first_rank = 2;
  record.assignment.master_host = "10.0.0.1";
  record.assignment.master_port = 4000;
  record.started_unix_ms = 1000;
  record.pids = {11, 12};
  return record;
}

TEST(AttemptRecord, RunningAttemptHasNoEnd) {
  auto json = nlohmann::json::parse(ToJson(TwoWorkers()));
  EXPECT_EQ(json["round"], 3);
  EXPECT_EQ(json["term"], 2);
  EXPECT_EQ(json["master"], "10.0.0.1:4000");
  EXPECT_TRUE(json["ended_unix_ms"].is_null());
  EXPECT_TRUE(json["reason"].is_null());
  ASSERT_EQ(json["workers"].size(), 2u);
  EXPECT_EQ(json["workers"][1]["rank"], 3);
  EXPECT_EQ(json["workers"][1]["pid"], 12);
  EXPECT_FALSE(json["workers"][1].contains("exit_code"));
}

TEST(AttemptRecord, AFieldALine) {
  AttemptRecord record = TwoWorkers();
  record.assignment.seat.node.slots = 1;
  record.version = "1.0";
  record.start_reason = "rank 1 said \"no\"";
  record.job = JobResult{3, ExitClass::kRetryable, "tab\there"};
  launcher::ExitRecord exit;
  exit.stderr_tail = {"one", "two"};
  record.exits = {exit};
  EXPECT_EQ(ToJson(record), R"({
  "run_id": "job",
  "attempt": 3,
  "muster": "1.0",
  "node": "node-1",
  "host": "",
  "round": 3,
  "term": 2,
  "node_rank": 0,
  "node_count": 0,
  "world_size": 0,
  "first_rank": 2,
  "restart_count": 0,
  "max_restarts": 0,
  "master": "10.0.0.1:4000",
  "start_reason": "rank 1 said \"no\"",
  "started_unix_ms": 1000,
  "workers_started_unix_ms": null,
  "standby_workers": 0,
  "first_output_seconds": null,
  "stopping_unix_ms": null,
  "ended_unix_ms": null,
  "reason": null,
  "job": {
    "exit_code": 3,
    "class": "retryable",
    "reason": "tab\there"
  },
  "workers": [
    {
      "local_rank": 0,
      "rank": 2,
      "pid": 11,
      "exit_code": 0,
      "signal": null,
      "core_dumped": false,
      "oom_killed": false,
      "after_stop": false,
      "max_rss_bytes": 0,
      "cpu_seconds": 0.0,
      "lived_seconds": 0.0,
      "ended_unix_ms": 0,
      "stderr_tail": [
        "one",
        "two"
      ]
    }
  ]
})");
}

TEST(AttemptRecord, EndOfAWorker) {
  AttemptRecord record = TwoWorkers();
  launcher::ExitRecord exit;
  exit.local_rank = 1;
  exit.exit_code = 137;
  exit.signal = 9;
  exit.oom_killed = true;
  exit.stderr_tail = {"bad byte \xff", "quote \" and \n newline"};
  record.exits = {exit};
  auto json = nlohmann::json::parse(ToJson(record));
  EXPECT_EQ(json["workers"][1]["signal"], "SIGKILL");
  EXPECT_EQ(json["workers"][1]["exit_code"], 137);
  EXPECT_EQ(json["workers"][1]["oom_killed"], true);
  EXPECT_EQ(json["workers"][1]["stderr_tail"][1], "quote \" and \n newline");
  EXPECT_FALSE(json["workers"][0].contains("exit_code"));
}

TEST(AttemptRecord, TheJobsEndIsReadBack) {
  AttemptRecord record = TwoWorkers();
  EXPECT_TRUE(nlohmann::json::parse(ToJson(record))["job"].is_null());
  EXPECT_EQ(ParseAttemptRecord(ToJson(record))->job, std::nullopt);
  record.job = JobResult{3, ExitClass::kRetryable, "node \"a\": worker rank 0 ended with exit code 3"};
  EXPECT_EQ(nlohmann::json::parse(ToJson(record))["job"]["class"], "retryable");
  EXPECT_EQ(ParseAttemptRecord(ToJson(record))->job, record.job);
}

TEST(AttemptRecord, TheFirstOutputIsReadBack) {
  AttemptRecord record = TwoWorkers();
  auto json = nlohmann::json::parse(ToJson(record));
  EXPECT_TRUE(json["first_output_seconds"].is_null());
  EXPECT_EQ(ParseAttemptRecord(ToJson(record))->first_output_seconds, std::nullopt);
  json.erase("first_output_seconds");  // an older version's
  EXPECT_EQ(ParseAttemptRecord(json.dump())->first_output_seconds, std::nullopt);
  record.first_output_seconds = 0.034512345;
  EXPECT_EQ(nlohmann::json::parse(ToJson(record))["first_output_seconds"], 0.034512345);
  EXPECT_EQ(ParseAttemptRecord(ToJson(record))->first_output_seconds, 0.034512345);
}

TEST(AttemptRecord, IsReplacedAsAWhole) {
  std::string folder = (std::filesystem::temp_directory_path() / "muster_record_XXXXXX").string();
  ASSERT_NE(mkdtemp(folder.data()), nullptr);
  std::string path = folder + "/attempt.json";
  AttemptRecord record = TwoWorkers();
  ASSERT_TRUE(WriteAttemptRecord(record, path).ok());
  record.end_reason = "done";
  ASSERT_TRUE(WriteAttemptRecord(record, path).ok());
  std::ifstream file(path);
  EXPECT_EQ(nlohmann::json::parse(file)["reason"], "done");
  EXPECT_EQ(std::distance(std::filesystem::directory_iterator(folder), {}), 1);  // no temporary file stays
  std::filesystem::remove_all(folder);
}

TEST(AttemptRecord, AFolderThatIsNotThereIsNamed) {
  Status status = WriteAttemptRecord(TwoWorkers(), "/nowhere/at/all/attempt.json");
  EXPECT_TRUE(absl::IsNotFound(status));
  EXPECT_NE(Message(status).find("/nowhere/at/all"), std::string_view::npos);
}

}  // namespace
}  // namespace muster::agent

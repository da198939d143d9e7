// SPDX-License-Identifier: Apache-2.0
#include "agent/report/attempt_history.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>

#include "agent/report/run_summary.h"
#include "base/text.h"

namespace muster::agent {
namespace {

using testing::HasSubstr;

AttemptRecord Record(const std::string& node, int node_rank, int64_t round, int64_t started) {
  AttemptRecord record;
  record.run_id = "job";
  record.attempt = static_cast<int>(round);
  record.version = "1.2.3";
  record.assignment.id = {1, round};
  record.assignment.node_rank = node_rank;
  record.assignment.node_count = 2;
  record.assignment.world_size = 4;
  record.assignment.restart_count = static_cast<int>(round);
  record.assignment.max_restarts = 3;
  record.assignment.seat.node.name = node;
  record.assignment.seat.node.host = "host-of-" + node;
  record.assignment.seat.node.slots = 2;
  record.assignment.seat.first_rank = 2 * node_rank;
  record.assignment.master_host = "10.0.0.1";
  record.assignment.master_port = 4000 + static_cast<int>(round);
  record.start_reason = "all 2 nodes are ready";
  record.started_unix_ms = started;
  record.workers_started_unix_ms = started + 10;
  record.pids = {11, 12};
  return record;
}

void End(AttemptRecord& record, int64_t at, int first_code, bool after_stop = false) {
  record.stopping_unix_ms = at;
  record.ended_unix_ms = at + 5;
  record.end_reason = first_code == 0 ? "all workers succeeded" : "node a (host h): worker failed";
  for (int rank = 0; rank < 2; ++rank) {
    launcher::ExitRecord exit;
    exit.local_rank = rank;
    exit.pid = 11 + rank;
    exit.exit_code = rank == 0 ? first_code : (first_code == 0 ? 0 : 143);
    exit.signal = exit.exit_code > 128 ? exit.exit_code - 128 : 0;
    exit.after_stop = after_stop || (rank == 1 && first_code != 0);
    exit.ended_unix_millis = at + rank;
    record.exits.push_back(exit);
  }
}

class AttemptHistoryTest : public testing::Test {
 protected:
  void SetUp() override { ASSERT_NE(mkdtemp(root_.data()), nullptr); }
  void TearDown() override { std::filesystem::remove_all(root_); }

  void Put(const std::string& path, const std::string& text) {
    std::filesystem::create_directories(std::filesystem::path(root_ + "/" + path).parent_path());
    std::ofstream(root_ + "/" + path) << text;
  }
  AttemptHistory Read(const HistoryLimits& limits = {}) {
    auto history = ReadAttemptHistory(root_, limits);
    EXPECT_TRUE(history.ok()) << history.status();
    return history.ok() ? *history : AttemptHistory{};
  }

  std::string root_ = (std::filesystem::temp_directory_path() / "muster_history_XXXXXX").string();
};

TEST(ParseAttemptRecord, GivesBackWhatWasWritten) {
  AttemptRecord record = Record("a", 1, 3, 1000);
  End(record, 2000, 137);
  record.exits[0].oom_killed = true;
  record.exits[0].error_message = "quote \" and \n";
  record.exits[0].stderr_tail = {"one", "two"};
  record.exits[0].stderr_reason = "one";
  record.exits[0].lived = std::chrono::milliseconds(1500);
  record.standby_workers = 2;
  record.first_output_seconds = 0.034;
  auto parsed = ParseAttemptRecord(ToJson(record));
  ASSERT_TRUE(parsed.ok()) << parsed.status();
  EXPECT_EQ(ToJson(*parsed), ToJson(record));
  EXPECT_EQ(parsed->exits[0].signal, 9);
  EXPECT_EQ(parsed->exits[0].stderr_reason, "one");
  EXPECT_EQ(parsed->assignment.master_port, 4003);
}

TEST(ParseAttemptRecord, TheTrainingOfItsWorkers) {
  using std::chrono::milliseconds;
  AttemptRecord record = Record("a", 1, 3, 1000);
  EXPECT_THAT(ToJson(record), testing::Not(HasSubstr("training")));  // nothing is known
  record.training = {{0, 120, false, 1000, 0.25, milliseconds(301)}, {1, 2.5, true, std::nullopt, std::nullopt, {}}};
  record.curve = {{0, 2.5}, {120, -1e-3}};
  record.spent = TimeSpent{milliseconds(1500), milliseconds(20), milliseconds(60'000), {}, {}, milliseconds(1)};
  const std::string text = ToJson(record);
  EXPECT_THAT(text, HasSubstr(R"({"local_rank": 0, "rank": 2, "unit": "steps", "position": 120, "end": 1000, )"
                              R"("step_seconds": 0.301, "loss": 0.25})"));
  EXPECT_THAT(text, HasSubstr(R"({"local_rank": 1, "rank": 3, "unit": "epochs", "position": 2.5})"));
  EXPECT_THAT(text, HasSubstr(R"("curve": [[0, 2.5], [120, -0.001]])"));
  EXPECT_THAT(text, HasSubstr(R"("seconds": {"waiting": 1.5, "start": 0.02, "training": 60, "redone": 0, )"));
  const auto parsed = ParseAttemptRecord(text);
  ASSERT_TRUE(parsed.ok()) << parsed.status();
  EXPECT_EQ(parsed->training, record.training);
  EXPECT_EQ(parsed->curve, record.curve);
  EXPECT_EQ(parsed->spent, record.spent);
  EXPECT_EQ(ToJson(*parsed), text);
}

TEST(ParseAttemptRecord, WhatIsWrongWithTheTrainingIsSaid) {
  std::string many = "[0, 1]";
  for (size_t at = 0; at < rendezvous::kMaxCurvePoints; ++at) many += ", [0, 1]";
  const struct {
    std::string field, said;
  } rows[] = {
      {R"("training": {})", "'training' is not a list"},
      {R"("training": [7])", "training 0: it is not an object"},
      {R"("training": [{"local_rank": 0}])", "training 0: 'position' is not there"},
      {R"("training": [{"local_rank": 0, "position": -1}])", "'position' is not a number from 0"},
      {R"("training": [{"local_rank": 0, "position": 1, "step_seconds": 1e99}])", "'step_seconds' is not a number"},
      {R"("training": [{"local_rank": 1, "position": 1}, {"local_rank": 1, "position": 1}])",
       "training 1: 'local_rank' is not above the one before"},
      {R"("curve": 3)", "'curve' is not a list"},
      {R"("curve": [[1]])", "'curve' is not a list of pairs"},
      {R"("curve": [[1, "2"]])", "'curve' is not a list of pairs"},
      {R"("curve": [[-1, 2]])", "'curve' is not a list of pairs"},
      {R"("curve": [)" + many + "]", "'curve' is too long"},
      {R"("seconds": [])", "seconds: not an object"},
      {R"("seconds": {"training": -2})", "seconds: 'training' is not a number from 0"}};
  for (const auto& row : rows) {
    const auto parsed =
        ParseAttemptRecord(R"({"run_id": "j", "node": "a", "round": 0, "started_unix_ms": 1, )" + row.field + "}");
    ASSERT_FALSE(parsed.ok()) << row.field;
    EXPECT_THAT(std::string(Message(parsed.status())), HasSubstr(row.said));
  }
}

TEST(ParseAttemptRecord, AWorkerThatWasStoppedForAHangFailedByIt) {
  AttemptRecord record = Record("a", 1, 3, 1000);
  End(record, 2000, 143, true);
  record.hangs = {{1, "no step reported for 300 s (last step 120)"}, {0, "no step reported for 299 s (last step 121)"}};
  auto parsed = ParseAttemptRecord(ToJson(record));
  ASSERT_TRUE(parsed.ok()) << parsed.status();
  EXPECT_EQ(parsed->exits[1].exit_code, 203);
  EXPECT_FALSE(parsed->exits[1].after_stop);
  EXPECT_EQ(parsed->exits[1].error_message, record.hangs[0].why);
  ASSERT_EQ(parsed->hangs.size(), 2u);
  EXPECT_EQ(parsed->hangs[0].local_rank, 1);
  EXPECT_EQ(DescribeWorkerExit(parsed->exits[1]), "hang (exit code 203)");
  std::vector<AttemptFile> files = {{"n1/attempt_3", *parsed}};
  std::vector<RunSummary> runs = Summarize(files);
  EXPECT_EQ(runs.at(0).exit_code, 203);
  ASSERT_NE(runs[0].attempts.at(0).RootCause(), nullptr);
  EXPECT_EQ(runs[0].attempts[0].RootCause()->rank(), 3);
  EXPECT_EQ(runs[0].attempts[0].end, WorkerEnd::kRetryable);
}

TEST(ParseAttemptRecord, ARunningAttemptHasNoEnd) {
  auto parsed = ParseAttemptRecord(ToJson(Record("a", 0, 0, 1000)));
  ASSERT_TRUE(parsed.ok());
  EXPECT_FALSE(parsed->ended_unix_ms.has_value());
  EXPECT_TRUE(parsed->exits.empty());
  EXPECT_EQ(parsed->assignment.seat.node.slots, 2);
}

TEST(ParseAttemptRecord, SaysWhatIsWrong) {
  std::string good = ToJson(Record("a", 0, 0, 1000));
  struct Case {
    std::string text;
    std::string said;
  };
  const Case cases[] = {
      {"", "is empty"},
      {good.substr(0, good.size() / 2), "cut off"},
      {"[]", "not a JSON object"},
      {"{}", "'run_id' is not there"},
      {R"({"run_id": 7, "node": "a", "round": 0, "started_unix_ms": 1})", "'run_id' is not a text"},
      {R"({"run_id": "j", "node": "a", "round": 0})", "'started_unix_ms' is not there"},
      {R"({"run_id": "j", "node": "a", "round": 0, "started_unix_ms": 1e300})",
       "'started_unix_ms' is not a whole number"},
      {R"({"run_id": "j", "node": "a", "round": 0, "started_unix_ms": 18446744073709551615})",
       "'started_unix_ms' is not a whole number from 0 to 253402300799999"},
      {R"({"run_id": "j", "node": "a", "round": -2, "started_unix_ms": 1})", "'round' is not a whole number from -1"},
      {R"({"run_id": "j", "node": "a", "round": 0, "started_unix_ms": 1, "workers": {}})", "'workers' is not a list"},
      {R"({"run_id": "j", "node": "a", "round": 0, "started_unix_ms": 1, "workers": [3]})",
       "worker 0: it is not an object"},
      {R"({"run_id": "j", "node": "a", "round": 0, "started_unix_ms": 1, "workers": [{"exit_code": 256}]})",
       "worker 0: 'exit_code' is not a whole number from 0 to 255"},
      {R"({"run_id": "j", "node": "a", "round": 0, "started_unix_ms": 1, "workers": [{"exit_code": 1, "stderr_tail": [1]}]})",
       "'stderr_tail' is not a list of texts"},
      {R"({"run_id": "j", "node": "a", "round": 0, "started_unix_ms": 1, "workers": [{"exit_code": 1, "lived_seconds": 1e99}]})",
       "'lived_seconds' is not a number from 0"},
      {R"({"run_id": "j", "node": "a", "round": 0, "started_unix_ms": 1, "first_output_seconds": -1})",
       "'first_output_seconds' is not a number from 0"},
      {R"({"run_id": "j", "node": "a", "round": 0, "started_unix_ms": 1, "job": 3})", "'job' is not an object"},
      {R"({"run_id": "j", "node": "a", "round": 0, "started_unix_ms": 1, "job": {"class": "fatal"}})",
       "job: 'exit_code' is not there"},
      {R"({"run_id": "j", "node": "a", "round": 0, "started_unix_ms": 1, "job": {"exit_code": 3, "class": "bad"}})",
       "job: 'class' is not success, fatal or retryable"},
  };
  for (const Case& c : cases) {
    auto parsed = ParseAttemptRecord(c.text);
    ASSERT_FALSE(parsed.ok()) << c.text;
    EXPECT_THAT(std::string(Message(parsed.status())), HasSubstr(c.said));
  }
}

TEST(ParseAttemptRecord, DeepNestingIsNoDanger) {
  const size_t depth = 1'000'000;
  std::string deep = std::string(depth, '[') + std::string(depth, ']');
  std::string good = ToJson(Record("a", 0, 0, 1000));
  EXPECT_FALSE(ParseAttemptRecord(deep).ok());
  EXPECT_TRUE(ParseAttemptRecord(good.substr(0, good.rfind('}')) + ", \"extra\": " + deep + "}").ok());
}

TEST_F(AttemptHistoryTest, FindsTheAttemptsOfSeveralNodes) {
  Put("node-0/job/attempt_0/attempt.json", ToJson(Record("a", 0, 0, 1000)));
  Put("node-1/job/attempt_0/attempt.json", ToJson(Record("b", 1, 0, 1000)));
  Put("node-1/job/attempt_1/attempt.json", ToJson(Record("b", 1, 1, 2000)));
  AttemptHistory history = Read();
  EXPECT_TRUE(history.problems.empty());
  ASSERT_EQ(history.files.size(), 3u);
  EXPECT_EQ(history.files[2].folder, root_ + "/node-1/job/attempt_1");
  auto one = ReadAttemptHistory(root_ + "/node-1/job/attempt_1//");
  ASSERT_TRUE(one.ok());
  EXPECT_EQ(one->files.size(), 1u);
}

TEST_F(AttemptHistoryTest, BadRecordsAreNamedAndHideNothing) {
  Put("job/attempt_0/attempt.json", "{\"run_id\": \"jo");
  Put("job/attempt_1/attempt.json", ToJson(Record("a", 0, 1, 1000)));
  Put("job/attempt_2/0/stdout.log", "");  // its agent was killed before the first record
  Put("job/attempt_3/attempt.json", std::string(1000, ' '));
  std::filesystem::create_directories(root_ + "/job/attempt_4/attempt.json");
  std::filesystem::create_directories(root_ + "/job/attempt_5");
  ASSERT_EQ(mkfifo((root_ + "/job/attempt_5/attempt.json").c_str(), 0600), 0);
  AttemptHistory history = Read({.file_bytes = 400});
  EXPECT_EQ(history.files.size(), 0u);  // the good file is longer than the limit, too
  history = Read();
  ASSERT_EQ(history.files.size(), 1u);
  ASSERT_EQ(history.problems.size(), 5u);
  EXPECT_THAT(history.problems[0].what, HasSubstr("cut off"));
  EXPECT_THAT(history.problems[1].what, HasSubstr("holds no attempt.json"));
  EXPECT_THAT(history.problems[2].what, HasSubstr("is empty"));
  EXPECT_THAT(history.problems[3].what, HasSubstr("not a regular file"));
  EXPECT_THAT(history.problems[4].what, HasSubstr("not a regular file"));
}

TEST_F(AttemptHistoryTest, LinksAreFollowedOnce) {
  Put("pods/a/job/attempt_0/attempt.json", ToJson(Record("a", 0, 0, 1000)));
  std::filesystem::create_directory_symlink(root_, root_ + "/pods/a/loop");
  std::filesystem::create_directory_symlink(root_ + "/pods/a", root_ + "/pods/again");
  std::filesystem::create_directory_symlink(root_ + "/nowhere", root_ + "/dangling");
  AttemptHistory history = Read();
  EXPECT_EQ(history.files.size(), 1u);
  EXPECT_TRUE(history.problems.empty());
}

TEST_F(AttemptHistoryTest, LimitsAreNamed) {
  for (int at = 0; at < 4; ++at) {
    Put(fmt::format("job/attempt_{}/attempt.json", at), ToJson(Record("a", 0, at, 1000 + at)));
  }
  AttemptHistory history = Read({.files = 2});
  EXPECT_EQ(history.files.size(), 2u);
  ASSERT_EQ(history.problems.size(), 1u);
  EXPECT_THAT(history.problems[0].what, HasSubstr("more than 2 attempts"));
  history = Read({.depth = 1});
  EXPECT_TRUE(history.files.empty());
  ASSERT_EQ(history.problems.size(), 1u);
  EXPECT_THAT(history.problems[0].what, HasSubstr("too deep"));
}

TEST_F(AttemptHistoryTest, TracebacksComeFromTheErrorFileBesideIt) {
  AttemptRecord record = Record("a", 0, 0, 1000);
  End(record, 2000, 1);
  record.exits[0].error_file = "/in/another/pod/error.json";
  record.exits[0].stderr_tail = {"kept"};
  record.exits[1].stderr_tail = {"dropped: it was stopped"};
  Put("job/attempt_0/attempt.json", ToJson(record));
  Put("job/attempt_0/0/error.json",
      R"({"message": {"message": "m", "extraInfo": {"py_callstack": "Traceback: boom"}}})");
  AttemptHistory history = Read();
  ASSERT_EQ(history.files.size(), 1u);
  EXPECT_EQ(history.files[0].record.exits[0].error_callstack, "Traceback: boom");
  EXPECT_EQ(history.files[0].record.exits[0].stderr_tail.size(), 1u);
  EXPECT_TRUE(history.files[0].record.exits[1].stderr_tail.empty());
}

TEST_F(AttemptHistoryTest, AFolderThatIsNotThereIsNamed) {
  auto history = ReadAttemptHistory(root_ + "/nowhere");
  ASSERT_FALSE(history.ok());
  EXPECT_THAT(std::string(Message(history.status())), HasSubstr("/nowhere"));
}

// Two nodes fail once and then succeed.
std::vector<AttemptFile> OneRestart() {
  std::vector<AttemptFile> files = {{"n0/attempt_0", Record("a", 0, 0, 1000)},
                                    {"n1/attempt_0", Record("b", 1, 0, 1001)},
                                    {"n0/attempt_1", Record("a", 0, 1, 2100)},
                                    {"n1/attempt_1", Record("b", 1, 1, 2101)}};
  End(files[0].record, 2000, 137);
  End(files[1].record, 2001, 143, true);
  End(files[2].record, 3000, 0);
  End(files[3].record, 3001, 0);
  return files;
}

TEST(Summarize, ARestart) {
  std::vector<AttemptFile> files = OneRestart();
  std::vector<RunSummary> runs = Summarize(files);
  ASSERT_EQ(runs.size(), 1u);
  const RunSummary& run = runs[0];
  EXPECT_EQ(run.exit_code, 0);
  EXPECT_EQ(run.restarts, 1);
  EXPECT_TRUE(run.end_recorded);
  EXPECT_EQ(run.ended - run.started, 3006 - 1000);
  ASSERT_EQ(run.attempts.size(), 2u);
  const AttemptSummary& first = run.attempts[0];
  EXPECT_EQ(first.nodes.size(), 2u);
  EXPECT_EQ(first.end, WorkerEnd::kRetryable);
  ASSERT_EQ(first.failures.size(), 1u);
  EXPECT_EQ(first.failures[0].rank(), 0);
  EXPECT_EQ(first.lost, 2111 - 2000);  // from the first stop to the last worker's start
  EXPECT_EQ(run.lost, 111);
  EXPECT_FALSE(run.attempts[1].lost.has_value());
}

// The job counts a pod that was recreated, and the agents do not.
TEST(Summarize, AJobOfMusterLocal) {
  const auto job = ParseJobRecord(
      R"({"kind":"TrainJob","name":"hello","restarts":1,"max_restarts":6,"pods":[{}],"drills":[)"
      R"({"time":"1970-01-01T00:00:01.5Z","order":"node:1@1s","done":"SIGKILL to node 1 on hello-node-0-1"},)"
      R"({"time":"1970-01-01T00:00:02.5Z","order":"rank:0@2s","done":"SIGKILL to rank 0 on hello-node-0-0"}]})");
  ASSERT_TRUE(job.ok()) << job.status();
  std::vector<AttemptFile> files = OneRestart();
  for (AttemptFile& file : files) file.record.assignment.restart_count = 0;
  std::vector<RunSummary> runs = Summarize(files);
  AddJob(*job, &runs);
  EXPECT_EQ(runs.at(0).restarts, 1);
  EXPECT_EQ(runs[0].max_restarts, 6);
  ASSERT_EQ(runs[0].attempts.at(0).drills.size(), 1u);
  EXPECT_EQ(runs[0].attempts[0].drills[0].order, "node:1@1s");
  EXPECT_EQ(runs[0].attempts.at(1).drills.at(0).order, "rank:0@2s");
  const std::string text = ToJson(runs, {});
  EXPECT_THAT(text, HasSubstr(R"("job": "TrainJob hello")"));
  EXPECT_THAT(text, HasSubstr(R"("unix_ms": 1500)"));
  AddJob(*job, std::make_unique<std::vector<RunSummary>>().get());  // without runs nothing happens
}

TEST(JobRecord, Pods) {
  const auto job =
      ParseJobRecord(R"({"kind":"TrainJob","name":"hello","state":"Running","pods":[)"
                     R"({"name":"hello-node-0-0-a","host":"hello-node-0-0","address":"127.0.1.2","node_rank":0},)"
                     R"({"name":"hello-data-0","host":"hello-data-0","ended":"1970-01-01T00:00:02Z"}]})");
  ASSERT_TRUE(job.ok()) << job.status();
  EXPECT_EQ(job->state, "Running");
  EXPECT_FALSE(job->ended);
  ASSERT_EQ(job->pods.size(), 2u);
  EXPECT_EQ(job->pods[0].name, "hello-node-0-0-a");
  EXPECT_EQ(job->pods[0].host, "hello-node-0-0");
  EXPECT_EQ(job->pods[0].address, "127.0.1.2");
  EXPECT_EQ(job->pods[0].node_rank, 0);
  EXPECT_FALSE(job->pods[0].ended);
  EXPECT_EQ(job->pods[1].node_rank, -1);
  EXPECT_TRUE(job->pods[1].ended);
  EXPECT_TRUE(ParseJobRecord(R"({"kind":"TrainJob","name":"hello","ended":"1970-01-01T00:00:02Z"})")->ended);
}

TEST(JobRecord, WhatIsWrongIsSaid) {
  const struct {
    const char *text, *said;
  } rows[] = {{"[]", "not an object"},
              {"{}", "'kind' is not there"},
              {R"({"kind":"TrainJob","name":"a","restarts":-1})", "restarts"},
              {R"({"kind":"TrainJob","name":"a","pods":{}})", "pods"},
              {R"({"kind":"TrainJob","name":"a","pods":["b"]})", "pods[0]"},
              {R"({"kind":"TrainJob","name":"a","pods":[{"node_rank":-2}]})", "node_rank"},
              {R"({"kind":"TrainJob","name":"a","drills":{}})", "drills"},
              {R"({"kind":"TrainJob","name":"a","drills":[7]})", "drills[0]"},
              {R"({"kind":"TrainJob","name":"a","drills":[{"time":"now","order":"","done":""}]})", "drills[0]"}};
  for (const auto& row : rows) {
    EXPECT_THAT(std::string(Message(ParseJobRecord(row.text).status())), HasSubstr(row.said)) << row.text;
  }
}

TEST(Summarize, FailureEndsTheRunWithItsCode) {
  std::vector<AttemptFile> files = OneRestart();
  files.resize(2);
  files[0].record.exits[0].exit_code = 3;
  files[0].record.exits[0].signal = 0;
  std::vector<RunSummary> runs = Summarize(files);
  EXPECT_EQ(runs.at(0).exit_code, 3);
  EXPECT_EQ(runs.at(0).attempts[0].end, WorkerEnd::kFatal);
}

TEST(Summarize, WhatTheRecordsSayOfTheJobCounts) {
  std::vector<AttemptFile> files = OneRestart();
  files.resize(2);
  files[1].record.job = JobResult{93, ExitClass::kRetryable, "no progress over 3 restarts in a row"};
  RunSummary run = Summarize(files).at(0);
  EXPECT_EQ(run.exit_code, 93);
  EXPECT_EQ(run.exit_class, ExitClass::kRetryable);  // by the job's --retry-codes
  EXPECT_EQ(run.reason, "no progress over 3 restarts in a row");
  EXPECT_THAT(ToJson({run}, {}), HasSubstr("\"class\": \"retryable\",\n      \"reason\": \"no progress"));
  files[0].record.job = JobResult{201, ExitClass::kRetryable, "no coordinator"};  // the node only gave up
  EXPECT_EQ(Summarize(files).at(0).exit_code, 93);
  files[1].record.job.reset();
  EXPECT_EQ(Summarize(files).at(0).exit_code, 201);
  files[0].record.job.reset();  // records of older agents
  EXPECT_EQ(Summarize(files).at(0).exit_code, 137);
  EXPECT_EQ(Summarize(files).at(0).exit_class, ExitClass::kRetryable);

  files = OneRestart();  // a node that ended after the first attempt does not know the end
  files[0].record.job = JobResult{201, ExitClass::kRetryable, "no coordinator"};
  EXPECT_EQ(Summarize(files).at(0).exit_code, 0);
}

TEST(Summarize, AWorkerThatLostAPeerIsNotTheCause) {
  std::vector<AttemptFile> files = OneRestart();
  files.resize(2);
  launcher::ExitRecord& peer = files[1].record.exits[0];
  peer.after_stop = false;
  peer.exit_code = 1;
  peer.ended_unix_millis = 1;  // by its clock, it died long before
  peer.stderr_tail = {"RuntimeError: [gloo/transport/tcp/pair.cc:534] Connection closed by peer [127.0.0.1]:1234"};
  std::vector<RunSummary> runs = Summarize(files);
  ASSERT_EQ(runs.at(0).attempts[0].failures.size(), 2u);
  EXPECT_EQ(runs[0].attempts[0].failures[0].rank(), 0);
  EXPECT_TRUE(runs[0].attempts[0].failures[1].consequence);
  EXPECT_EQ(runs[0].exit_code, 137);
}

TEST(Summarize, KilledAgentsLeaveNoEnd) {
  std::vector<AttemptFile> files = {{"n0", Record("a", 0, 0, 1000)}, {"n1", Record("b", 1, 0, 1001)}};
  std::vector<RunSummary> runs = Summarize(files);
  EXPECT_FALSE(runs.at(0).exit_code.has_value());
  EXPECT_FALSE(runs[0].end_recorded);
  EXPECT_EQ(runs[0].attempts[0].end, WorkerEnd::kNotRecorded);
  EXPECT_EQ(runs[0].attempts[0].not_ended, 2);
}

TEST(Summarize, WorkersOfALostNodesPeersAreNoCause) {
  std::vector<AttemptFile> files = {{"n0", Record("a", 0, 0, 1000)}, {"n1", Record("b", 1, 0, 1001)}};
  End(files[0].record, 2000, 1);
  files[0].record.exits[0].stderr_tail = {"RuntimeError: [gloo/transport/tcp/pair.cc:534] Connection closed by peer"};
  std::vector<RunSummary> runs = Summarize(files);
  ASSERT_EQ(runs.at(0).attempts[0].failures.size(), 1u);
  EXPECT_EQ(runs[0].attempts[0].RootCause(), nullptr);
  EXPECT_EQ(runs[0].attempts[0].end, WorkerEnd::kStopped);
  EXPECT_FALSE(runs[0].exit_code.has_value());
  files[1].record.ended_unix_ms = 2100;  // every node has an end: no node was lost, so the failure counts
  runs = Summarize(files);
  EXPECT_EQ(runs[0].exit_code, 1);
}

TEST(Summarize, StoppedBySignal) {
  std::vector<AttemptFile> files = {{"n0", Record("a", 0, 0, 1000)}};
  End(files[0].record, 2000, 143, true);
  files[0].record.end_reason = "preempted: SIGTERM";
  EXPECT_EQ(Summarize(files).at(0).exit_code, 143);
  files[0].record.end_reason = "node b was killed by SIGKILL";  // the signal is another node's, not this job's end
  EXPECT_FALSE(Summarize(files).at(0).exit_code.has_value());
}

TEST(Summarize, AnAttemptWithoutWorkersCountsWithTheOneBefore) {
  std::vector<AttemptFile> files = OneRestart();
  AttemptFile between{"n0/attempt_9", Record("a", 0, 1, 2050)};
  between.record.workers_started_unix_ms.reset();
  between.record.ended_unix_ms = 2060;
  files[2].record.assignment.id.number = files[3].record.assignment.id.number = 2;
  files.push_back(between);
  std::vector<RunSummary> runs = Summarize(files);
  ASSERT_EQ(runs.at(0).attempts.size(), 3u);
  EXPECT_EQ(runs[0].lost, 111);
  EXPECT_FALSE(runs[0].attempts[1].lost.has_value());
}

TEST(Summarize, ASecondStartOfTheSameRunIdIsAnotherRun) {
  std::vector<AttemptFile> files = OneRestart();
  AttemptFile again{"n0/attempt_2", Record("a", 0, 0, 9000)};
  End(again.record, 9500, 0);
  again.record.attempt = 2;
  again.record.assignment.node_count = 1;
  files.push_back(again);
  std::vector<RunSummary> runs = Summarize(files);
  ASSERT_EQ(runs.size(), 2u);
  EXPECT_EQ(runs[0].started, 9000);  // the newest first
  EXPECT_EQ(runs[1].attempts.size(), 2u);
}

TEST(Summarize, ClocksThatDifferGiveNoNegativeTimes) {
  std::vector<AttemptFile> files = OneRestart();
  for (size_t at : {2, 3}) {
    files[at].record.started_unix_ms -= 1500;
    *files[at].record.workers_started_unix_ms -= 1500;
  }
  std::vector<RunSummary> runs = Summarize(files);
  EXPECT_EQ(runs.at(0).attempts[0].lost, 0);
}

}  // namespace
}  // namespace muster::agent

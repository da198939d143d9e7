// SPDX-License-Identifier: Apache-2.0
// How far a job's training is, by the answers of its agents.
#include "local/state/job_progress.h"

#include <gtest/gtest.h>

namespace muster::local {
namespace {

using std::chrono::seconds;

TEST(JobProgress, WhatAnAgentTells) {
  const struct {
    std::string status;
    std::optional<TrainingFacts> progress;
    std::string text;
  } rows[] = {
      {R"({"phase":"running","training":{"rank":0,"unit":"steps","position":3,"end":9,"left_seconds":12.5}})",
       TrainingFacts{.position = 3, .end = 9, .left = std::chrono::milliseconds(12500)}, "33%"},
      {R"({"training":{"unit":"epochs","position":2.5}})", TrainingFacts{.position = 2.5, .in_epochs = true},
       "epoch 2.5"},
      {R"({"training":{"position":123456}})", TrainingFacts{.position = 123456}, "step 123456"},
      {R"({"training":{"position":9,"end":9}})", TrainingFacts{.position = 9, .end = 9}, "100%"},
      {R"({"training":{"position":9.99,"end":10}})", TrainingFacts{.position = 9.99, .end = 10}, "99%"},
      {R"({"training":{"position":12,"end":10}})", TrainingFacts{.position = 12, .end = 10}, "100%"},
      {R"({"training":{"position":1,"end":0}})", TrainingFacts{.position = 1, .end = 0}, "step 1"},
      {R"({"training":{"position":1,"end":"9"}})", std::nullopt, ""},
      {R"({"training":{"position":1,"left_seconds":1e300}})", std::nullopt, ""},
      {R"({"training":{"position":-1}})", std::nullopt, ""},
      {R"({"training":{"position":"1"}})", std::nullopt, ""},
      {R"({"training":[]})", std::nullopt, ""},
      {R"({"phase":"running"})", std::nullopt, ""},
      {R"([{"training":{"position":1}}])", std::nullopt, ""},
      {"404 not found", std::nullopt, ""},
      {"", std::nullopt, ""},
  };
  for (const auto& row : rows) {
    const auto progress = ParseJobProgress(row.status);
    EXPECT_EQ(progress, row.progress) << row.status;
    EXPECT_EQ(progress ? ProgressText(*progress) : "", row.text) << row.status;
  }
}

TEST(JobProgress, TheFurthestCounts) {
  EXPECT_TRUE(IsFurther({.position = 1}, std::nullopt));
  EXPECT_TRUE(IsFurther({.position = 2}, TrainingFacts{.position = 1}));
  EXPECT_FALSE(IsFurther({.position = 1}, TrainingFacts{.position = 1}));
  EXPECT_FALSE(IsFurther({.position = 9, .in_epochs = true}, TrainingFacts{.position = 1}));
}

TEST(JobProgress, WhoIsAsked) {
  const auto pod = [](int rank, std::string address, bool ended = false) {
    PodRecord record{.name = "a", .address = std::move(address), .node_rank = rank};
    if (ended) record.ended = WallTime();
    return record;
  };
  FoundJob job{.name = "a", .runs = true, .record = RunRecord{}};
  job.record->pods = {pod(-1, "127.0.0.9"), pod(1, "127.0.0.2", true), pod(0, "127.0.0.1"), pod(1, "127.0.0.3"),
                      pod(2, ""),           pod(3, "127.0.0.4")};
  using Addresses = std::vector<std::string>;
  EXPECT_EQ(AgentsToAsk(job, 8), (Addresses{"127.0.0.1", "127.0.0.3", "127.0.0.4"}));
  EXPECT_EQ(AgentsToAsk(job, 2), (Addresses{"127.0.0.1", "127.0.0.3"}));
  job.runs = false;
  EXPECT_EQ(AgentsToAsk(job, 8), Addresses{});
  job.runs = true;
  job.record->ended = WallTime();
  EXPECT_EQ(AgentsToAsk(job, 8), Addresses{});
  job.record = absl::NotFoundError("none");
  EXPECT_EQ(AgentsToAsk(job, 8), Addresses{});
}

}  // namespace
}  // namespace muster::local

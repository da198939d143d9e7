// SPDX-License-Identifier: Apache-2.0
#include "local/state/recorded_rank.h"

#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>

#include "base/text.h"

namespace muster::local {
namespace {

namespace fs = std::filesystem;

class RecordedRankTest : public testing::Test {
 protected:
  RecordedRankTest() : folder_(fs::path(testing::TempDir()) / fmt::format("recorded-rank-{}", getpid())) {}
  ~RecordedRankTest() override { fs::remove_all(folder_); }

  void Record(const std::string& attempt, const std::string& text) {
    fs::create_directories(folder_ / attempt);
    std::ofstream(folder_ / attempt / "attempt.json") << text;
  }
  // "PID of LOCAL_RANK"; empty: there is none.
  std::string Found(int rank) const {
    const auto worker = RecordedRank(folder_, rank);
    return worker ? fmt::format("{} of {}", worker->pid, worker->local_rank) : "";
  }

  const fs::path folder_;
};

TEST_F(RecordedRankTest, IsInTheAttemptThatBeganLast) {
  EXPECT_EQ(Found(2), "") << "there is no folder";
  Record("run_b/attempt_0",
         R"({"workers_started_unix_ms": 1000, "workers": [{"local_rank": 0, "rank": 2, "pid": 7}]})");
  EXPECT_EQ(Found(2), "7 of 0");
  Record("run_a/attempt_9", R"({"workers_started_unix_ms": 3000, "workers": [
    {"local_rank": 0, "rank": 2, "pid": 11}, {"local_rank": 1, "rank": 3, "pid": 12}]})");
  Record("run_a/attempt_10",
         R"({"workers_started_unix_ms": 2000, "workers": [{"local_rank": 1, "rank": 3, "pid": 5}]})");
  EXPECT_EQ(Found(2), "11 of 0");
  EXPECT_EQ(Found(3), "12 of 1");
  EXPECT_EQ(Found(0), "");
}

TEST_F(RecordedRankTest, WhatCannotBeReadCountsAsNone) {
  const std::string begins = R"({"workers_started_unix_ms": 1000, "workers": )";
  for (const std::string& text : {
           std::string("{"),
           std::string("[]"),
           std::string(R"({"workers_started_unix_ms": null, "workers": [{"local_rank": 0, "rank": 0, "pid": 7}]})"),
           begins + "7}",
           begins + "[7]}",
           begins + R"([{"local_rank": 0, "rank": 0, "pid": null}]})",
           begins + R"([{"local_rank": 0, "rank": 0, "pid": -1}]})",
           begins + R"([{"rank": 0, "pid": 7}]})",
       }) {
    Record("run/attempt_0", text);
    EXPECT_EQ(Found(0), "") << text;
  }
}

}  // namespace
}  // namespace muster::local

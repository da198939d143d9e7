// SPDX-License-Identifier: Apache-2.0
#include "local/verdict.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <csignal>

namespace muster::local {

using namespace controller;

namespace {

using testing::ElementsAre;

LocalJobState Job(const std::string& state, std::vector<Failure> failures = {}) {
  LocalJobState job{.kind = "TrainJob", .name = "a", .state = state, .restarts = 1, .failures = std::move(failures)};
  job.succeeded = state == "Complete";
  job.finished = job.succeeded || state == "Failed";
  return job;
}

TEST(RunVerdict, HasStateLineAndCodeOfEachEnd) {
  Failure three;
  three.exit_code = 3;
  LocalJobState failed = Job("Failed", {three});
  failed.message = "why";
  const Status refused = absl::InvalidArgumentError("p: no such path");
  const struct {
    RunEnd end;
    std::string state, line;
    int code;
  } rows[] = {
      {{.job = Job("Complete")}, "Complete", "TrainJob a: Complete, 1 restart", 0},
      {{.job = failed}, "Failed", "TrainJob a: Failed, 1 restart: why", 3},
      {{.job = Job("Failed")}, "Failed", "TrainJob a: Failed, 1 restart", 1},
      {{.job = Job("Running"), .signal = SIGINT}, "Stopped", "TrainJob a: Stopped, 1 restart: by SIGINT", 130},
      {{.job = Job("Complete"), .signal = SIGTERM}, "Complete", "TrainJob a: Complete, 1 restart", 143},
      {{.job = Job("Created"), .refused = refused}, "Failed", "TrainJob a: Failed, 1 restart: p: no such path", 78},
      {{.job = Job("Created"), .signal = SIGHUP, .refused = refused},
       "Stopped",
       "TrainJob a: Stopped, 1 restart: by SIGHUP",
       129},
  };
  for (const auto& row : rows) {
    const RunVerdict verdict = VerdictOn(row.end);
    EXPECT_EQ(verdict.state, row.state);
    EXPECT_THAT(verdict.lines, ElementsAre(row.line));
    EXPECT_EQ(verdict.exit_code, row.code);
  }
}

TEST(RunVerdict, AMissedDrillFailsARunThatSucceeded) {
  RunVerdict verdict = VerdictOn({.job = Job("Complete"), .missed = {"node:1@x: why"}});
  EXPECT_EQ(verdict.exit_code, 92);
  EXPECT_THAT(verdict.lines, ElementsAre("the drill did not happen: node:1@x: why", "TrainJob a: Complete, 1 restart"));
  EXPECT_EQ(VerdictOn({.job = Job("Failed"), .missed = {"node:1@x: why"}}).exit_code, 1);
  EXPECT_EQ(VerdictOn({.job = Job("Running"), .signal = SIGINT, .missed = {"node:1@x: why"}}).exit_code, 130);
}

}  // namespace
}  // namespace muster::local

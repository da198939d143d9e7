// SPDX-License-Identifier: Apache-2.0
#include "local/state/job_folders.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>

#include "base/text.h"
#include "local/state/process_handle.h"

namespace muster::local {
namespace {

namespace fs = std::filesystem;
using testing::HasSubstr;

class JobFolders : public testing::Test {
 protected:
  JobFolders() {
    std::string pattern = testing::TempDir() + "muster-jobs-XXXXXX";
    state_ = mkdtemp(pattern.data());
  }
  ~JobFolders() override { fs::remove_all(state_); }

  void Put(const std::string& path) {
    fs::create_directories(fs::path(state_ + "/" + path).parent_path());
    std::ofstream(state_ + "/" + path) << path;
  }
  bool Has(const std::string& path) const { return fs::exists(state_ + "/" + path); }
  static RunRecord Record(bool ended) {
    RunRecord record{.kind = "TrainJob", .name = "a", .pid = getpid()};
    if (ended) record.ended = record.begun;
    return record;
  }

  std::string state_;
};

TEST_F(JobFolders, TheLockSaysWhoRuns) {
  EXPECT_TRUE(FindJobs(state_)->empty());
  auto taken = TakeJobFolder(state_, "a");
  ASSERT_TRUE(taken.ok());
  EXPECT_TRUE(FindJob(state_, "a")->runs);
  EXPECT_TRUE(absl::IsNotFound(FindJob(state_, "a")->record.status()));
  ASSERT_TRUE(WriteRunRecord(taken->path, Record(false)).ok());
  EXPECT_FALSE(FindJob(state_, "a")->lost());
  EXPECT_THAT(std::string(Message(TakeJobFolder(state_, "a").status())), HasSubstr("a job 'a' runs here already"));
  taken->lock.Close();
  EXPECT_TRUE(FindJob(state_, "a")->lost());
  ASSERT_TRUE(WriteRunRecord(taken->path, Record(true)).ok());
  EXPECT_FALSE(FindJob(state_, "a")->lost());
  EXPECT_EQ(FindJobs(state_)->size(), 1);
}

TEST_F(JobFolders, OneRunBeforeIsKeptWithoutItsVolumes) {
  ASSERT_TRUE(TakeJobFolder(state_, "a").ok());
  EXPECT_TRUE(absl::IsNotFound(PreviousRun(*FindJob(state_, "a")).status()));
  for (const char* round : {"first", "second"}) {
    Put(fmt::format("jobs/a/pods/{}/logs/node.log", round));
    Put(fmt::format("jobs/a/pods/{}/volumes/v/secret", round));
    Put("jobs/a/hosts");
    Put("jobs/a/output.log");
    ASSERT_TRUE(WriteRunRecord(state_ + "/jobs/a", Record(false)).ok());
    const auto taken = TakeJobFolder(state_, "a");
    ASSERT_TRUE(taken.ok());
    EXPECT_TRUE(taken->lost.has_value());
    EXPECT_FALSE(Has("jobs/a/pods"));
    EXPECT_FALSE(Has("jobs/a/hosts"));
    EXPECT_FALSE(Has("jobs/a/run.json"));
    EXPECT_TRUE(Has("jobs/a/previous/output.log"));
    EXPECT_TRUE(Has(fmt::format("jobs/a/previous/pods/{}/logs/node.log", round)));
    EXPECT_FALSE(Has(fmt::format("jobs/a/previous/pods/{}/volumes", round)));
  }
  EXPECT_FALSE(Has("jobs/a/previous/pods/first"));
  EXPECT_TRUE(PreviousRun(*FindJob(state_, "a"))->record.ok());
}

TEST_F(JobFolders, AStartThatWasKilledBeforeItsRecordKeepsTheRunBefore) {
  Put("jobs/a/pods/first/logs/node.log");
  ASSERT_TRUE(WriteRunRecord(state_ + "/jobs/a", Record(true)).ok());
  ASSERT_TRUE(TakeJobFolder(state_, "a").ok());
  ASSERT_TRUE(TakeJobFolder(state_, "a").ok());
  EXPECT_TRUE(Has("jobs/a/previous/pods/first/logs/node.log"));
}

TEST_F(JobFolders, AKillWhileTheRunBeforeIsMovedLosesNothing) {
  Put("jobs/a/previous/run.json");
  Put("jobs/a/previous.new/pods/first/logs/node.log");
  ASSERT_TRUE(WriteRunRecord(state_ + "/jobs/a", Record(true)).ok());
  ASSERT_TRUE(TakeJobFolder(state_, "a").ok());
  EXPECT_TRUE(Has("jobs/a/previous/pods/first/logs/node.log"));
  EXPECT_TRUE(PreviousRun(*FindJob(state_, "a"))->record.ok());
  EXPECT_FALSE(Has("jobs/a/previous.new"));
}

TEST_F(JobFolders, AnUnknownNameHasItsNearestOnes) {
  EXPECT_THAT(std::string(Message(FindJob(state_, "a").status())), HasSubstr("there is none in "));
  for (int i = 10; i < 22; ++i) ASSERT_TRUE(TakeJobFolder(state_, fmt::format("job{}", i)).ok());
  EXPECT_EQ(Message(FindJob(state_, "jbo21").status()),
            "no job 'jbo21' has run here; the nearest names are job21, job11, job12");
  const std::string said(Message(FindJob(state_, "../../etc").status()));
  EXPECT_THAT(said, HasSubstr("no job '../../etc' has run here; these have: job10, job11"));
  EXPECT_TRUE(said.ends_with("job19 ...")) << said;
}

TEST(ProcessHandle, IsThatVeryProcess) {
  const auto started = ProcessStart(getpid());
  ASSERT_TRUE(started.has_value());
  const auto own = ProcessHandle::Open(getpid(), *started);
  ASSERT_TRUE(own.ok()) << own.status();
  EXPECT_TRUE(own->Signal(0).ok());
  EXPECT_TRUE(absl::IsNotFound(ProcessHandle::Open(getpid(), *started + 1).status()));
  EXPECT_TRUE(absl::IsNotFound(ProcessHandle::Open(0, 0).status()));
  EXPECT_EQ(ProcessStart(0), std::nullopt);
}

}  // namespace
}  // namespace muster::local

// SPDX-License-Identifier: Apache-2.0
#include "agent/workers/flight_recorder.h"

#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <filesystem>

namespace muster::agent {
namespace {

using testing::Contains;
using testing::Key;
using testing::Not;
using testing::Pair;
using testing::SizeIs;
using testing::UnorderedElementsAre;

TEST(FlightRecorder, AllThatPyTorchNeedsToDumpOnRequest) {
  EXPECT_THAT(FlightRecorderVariables(Environment::Of({"PATH=/bin"}), "/logs/x/attempt_0/flight_recorder"),
              UnorderedElementsAre(
                  Pair("TORCH_NCCL_DEBUG_INFO_PIPE_FILE", "/logs/x/attempt_0/flight_recorder/"),
                  Pair("TORCH_FR_DUMP_TEMP_FILE", "/logs/x/attempt_0/flight_recorder/nccl_trace_rank_"),
                  Pair("TORCH_NCCL_DEBUG_INFO_TEMP_FILE", "/logs/x/attempt_0/flight_recorder/nccl_trace_rank_"),
                  Pair("TORCH_FR_BUFFER_SIZE", "2000"), Pair("TORCH_NCCL_TRACE_BUFFER_SIZE", "2000"),
                  Pair("TORCH_FR_DUMP_ON_TIMEOUT", "1"), Pair("TORCH_NCCL_DUMP_ON_TIMEOUT", "1")));
  EXPECT_THAT(FlightRecorderVariables({}, ""), SizeIs(0));
}

TEST(FlightRecorder, ATorchThatWarnsOfOldNamesGetsNone) {
  std::vector<std::string> names[2];
  for (int newer : {0, 1}) {
    for (const auto& [name, value] :
         FlightRecorderVariables({}, "/f", newer != 0 ? RecorderNames::kNew : RecorderNames::kOld)) {
      names[newer].push_back(name);
    }
  }
  EXPECT_THAT(names[0], UnorderedElementsAre("TORCH_NCCL_DEBUG_INFO_PIPE_FILE", "TORCH_NCCL_DEBUG_INFO_TEMP_FILE",
                                             "TORCH_NCCL_TRACE_BUFFER_SIZE", "TORCH_FR_DUMP_ON_TIMEOUT",
                                             "TORCH_NCCL_DUMP_ON_TIMEOUT"));
  EXPECT_THAT(names[1],
              UnorderedElementsAre("TORCH_NCCL_DEBUG_INFO_PIPE_FILE", "TORCH_FR_DUMP_TEMP_FILE", "TORCH_FR_BUFFER_SIZE",
                                   "TORCH_FR_DUMP_ON_TIMEOUT", "TORCH_NCCL_DUMP_ON_TIMEOUT"));
}

TEST(FlightRecorder, WhatTheUserSetsByAnyNameStays) {
  auto variables = FlightRecorderVariables(
      Environment::Of({"TORCH_NCCL_TRACE_BUFFER_SIZE=0", "TORCH_FR_DUMP_TEMP_FILE=/mine/"}), "/f");
  EXPECT_THAT(variables, Contains(Key("TORCH_NCCL_DEBUG_INFO_PIPE_FILE")));
  for (const char* name : {"TORCH_FR_BUFFER_SIZE", "TORCH_NCCL_TRACE_BUFFER_SIZE", "TORCH_FR_DUMP_TEMP_FILE",
                           "TORCH_NCCL_DEBUG_INFO_TEMP_FILE"}) {
    EXPECT_THAT(variables, Not(Contains(Key(name))));
  }
}

TEST(FlightRecorder, PlacesOfAWorker) {
  EXPECT_EQ(FlightRecorderOf(Environment::Of({"RANK=7"})), std::nullopt);
  EXPECT_EQ(FlightRecorderOf(Environment::Of({"TORCH_NCCL_DEBUG_INFO_PIPE_FILE=/p_"})), std::nullopt);
  auto old = FlightRecorderOf(
      Environment::Of({"RANK=7", "TORCH_NCCL_DEBUG_INFO_PIPE_FILE=/p_", "TORCH_NCCL_DEBUG_INFO_TEMP_FILE=/old_"}));
  ASSERT_TRUE(old);
  EXPECT_EQ(old->pipe, "/p_7.pipe");
  EXPECT_EQ(old->dump, "/old_7");
  auto both =
      FlightRecorderOf(Environment::Of({"TORCH_NCCL_DEBUG_INFO_TEMP_FILE=/old_", "TORCH_FR_DUMP_TEMP_FILE=/new_",
                                        "RANK=12", "TORCH_NCCL_DEBUG_INFO_PIPE_FILE=/p_"}));
  EXPECT_EQ(both->dump, "/new_12") << "the newer name counts, as in PyTorch";
}

class FlightRecorderPipe : public testing::Test {
 protected:
  void SetUp() override { ASSERT_NE(mkdtemp(folder_.data()), nullptr); }
  void TearDown() override { std::filesystem::remove_all(folder_); }
  std::string folder_ = std::filesystem::temp_directory_path() / "muster-pipe-XXXXXX";
};

TEST_F(FlightRecorderPipe, AskForDumpWritesToItAndNeverWaits) {
  std::string pipe = folder_ + "/0.pipe";
  EXPECT_TRUE(absl::IsNotFound(AskForDump(pipe)));
  ASSERT_EQ(mkfifo(pipe.c_str(), 0600), 0);
  EXPECT_FALSE(AskForDump(pipe).ok()) << "nobody reads";
  int reader = open(pipe.c_str(), O_RDONLY | O_NONBLOCK);  // as PyTorch does
  EXPECT_TRUE(AskForDump(pipe).ok());
  char bytes[128];
  EXPECT_GT(read(reader, bytes, sizeof bytes), 0);
  while (AskForDump(pipe).ok()) {  // until the pipe is full
  }
  EXPECT_FALSE(AskForDump(pipe).ok());
  close(reader);
  std::string file = folder_ + "/file";
  close(open(file.c_str(), O_CREAT | O_WRONLY, 0600));
  EXPECT_TRUE(absl::IsInvalidArgument(AskForDump(file)));
}

TEST_F(FlightRecorderPipe, AFolderIsCreatedWhereFifosCanBe) {
  EXPECT_EQ(MakeFlightRecorderFolder(""), "");
  EXPECT_EQ(MakeFlightRecorderFolder(folder_ + "/missing"), "");
  EXPECT_EQ(MakeFlightRecorderFolder(folder_), folder_ + "/flight_recorder");
  EXPECT_TRUE(std::filesystem::is_empty(folder_ + "/flight_recorder"));
  EXPECT_EQ(MakeFlightRecorderFolder("/proc/self"), "");
}

}  // namespace
}  // namespace muster::agent

// SPDX-License-Identifier: Apache-2.0
#include "base/state_folder.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace muster {
namespace {

using testing::HasSubstr;

TEST(StateFolder, IsWhereTheVariablesSay) {
  EXPECT_EQ(*StateFolder({{"XDG_STATE_HOME", "/s"}, {"HOME", "/h"}}), "/s/muster");
  EXPECT_EQ(*StateFolder({{"HOME", "/h"}}), "/h/.local/state/muster");
  EXPECT_EQ(*StateFolder({{"XDG_STATE_HOME", ""}, {"HOME", "/h"}}), "/h/.local/state/muster");
}

TEST(StateFolder, NeedsAnAbsolutePath) {
  EXPECT_THAT(Message(StateFolder({}).status()), HasSubstr("neither XDG_STATE_HOME nor HOME is set"));
  EXPECT_THAT(Message(StateFolder({{"XDG_STATE_HOME", "here"}}).status()),
              HasSubstr("XDG_STATE_HOME: 'here' is not an absolute path"));
  EXPECT_THAT(Message(StateFolder({{"HOME", "h"}}).status()), HasSubstr("HOME: 'h' is not an absolute path"));
}

TEST(StateFolder, HasAFolderForImports) { EXPECT_EQ(ImportsFolder("/s/muster"), "/s/muster/imports"); }

TEST(StateFolder, HasAFolderForEachJob) {
  const std::string job = JobFolder("/s/muster", "digits");
  EXPECT_EQ(job, "/s/muster/jobs/digits");
  EXPECT_EQ(RunRecordPath(job), "/s/muster/jobs/digits/run.json");
  EXPECT_EQ(AttemptsFolder(job), "/s/muster/jobs/digits/attempts");
  EXPECT_EQ(ReportPath(job), "/s/muster/jobs/digits/report.html");
}

}  // namespace
}  // namespace muster

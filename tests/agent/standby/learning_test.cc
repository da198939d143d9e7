// SPDX-License-Identifier: Apache-2.0
// Which source of the script's imports counts.
#include "agent/standby/learning.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace muster::agent::standby {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;

class LearningTest : public testing::Test {
 protected:
  void Begin() {
    learning_.emplace(loop_, options_, Learning::Events{.told = [] {}, .replaced = [this] { ++replaced_; }});
  }

  boost::asio::io_context loop_;
  RunOptions options_;
  std::optional<Learning> learning_;
  int replaced_ = 0;
};

TEST_F(LearningTest, ABetterSourceReplacesAWorseOne) {
  Begin();
  EXPECT_THAT(learning_->names(), IsEmpty());
  EXPECT_TRUE(learning_->wants_imports());
  learning_->HearText({"json"});
  EXPECT_EQ(replaced_, 0);
  learning_->HearText({"csv"});  // of another local rank's probe
  EXPECT_THAT(learning_->names(), ElementsAre("json", "csv"));
  EXPECT_TRUE(learning_->wants_imports());
  learning_->HearNode({"torch", "json"});
  EXPECT_THAT(learning_->names(), ElementsAre("torch", "json"));
  EXPECT_EQ(replaced_, 1);
  EXPECT_FALSE(learning_->wants_imports());
  learning_->HearText({"wave"});
  learning_->HearNode({"wave"});
  EXPECT_THAT(learning_->names(), ElementsAre("torch", "json"));
  EXPECT_EQ(replaced_, 1);
  EXPECT_FALSE(learning_->from_worker());
}

TEST_F(LearningTest, AWorkerThatBeganInAStandbyAddsToWhatItsStandbyHasImported) {
  Begin();
  learning_->HearText({"json", "csv"});
  auto channel = PythonChannel::Open(loop_, {});
  ASSERT_TRUE(channel.ok());
  learning_->Follow(*std::move(channel), 1);
  EXPECT_THAT(learning_->names(), ElementsAre("json", "csv"));
  EXPECT_EQ(replaced_, 0);
  EXPECT_TRUE(learning_->from_worker());
  learning_->HearNode({"wave"});
  EXPECT_THAT(learning_->names(), ElementsAre("json", "csv"));
}

TEST_F(LearningTest, TheUsersListIsNotReplaced) {
  options_.standby.imports = {"torch"};
  Begin();
  EXPECT_FALSE(learning_->wants_imports());
  learning_->HearText({"json"});
  learning_->HearNode({"json"});
  EXPECT_THAT(learning_->names(), ElementsAre("torch"));
  EXPECT_EQ(replaced_, 0);
}

TEST_F(LearningTest, AModuleThatIsLeftOutStaysSo) {
  Begin();
  learning_->HearText({"json", "odd", "csv", "wave"});
  EXPECT_TRUE(learning_->LeaveOut(Letter::kUnfit, "odd", "opens a socket"));
  EXPECT_THAT(learning_->names(), ElementsAre("json", "csv", "wave"));
  EXPECT_TRUE(learning_->LeaveOut(Letter::kEnd, "csv", "reads X, after the script has changed it"));
  EXPECT_THAT(learning_->names(), ElementsAre("json"));
  learning_->HearNode({"odd", "json", "csv", "wave"});  // the end was one in the other list
  EXPECT_THAT(learning_->names(), ElementsAre("json", "csv", "wave"));
}

}  // namespace
}  // namespace muster::agent::standby

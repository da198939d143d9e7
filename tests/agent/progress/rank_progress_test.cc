// SPDX-License-Identifier: Apache-2.0
#include "agent/progress/rank_progress.h"

#include <gtest/gtest.h>

#include <cmath>

namespace muster::agent {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;

class RankProgressTest : public testing::Test {
 protected:
  void Add(const ProgressLine& line, Duration after = seconds(1)) { progress_.Add(line, now_ += after); }

  TimePoint now_{};
  RankProgress progress_;
};

TEST_F(RankProgressTest, StepsOfTheRun) {
  EXPECT_FALSE(progress_.position() || progress_.end() || progress_.step_time() || progress_.left());
  for (int step = 10; step <= 50; step += 10) Add({.step = step, .steps = 100, .loss = 1.0 / step});
  EXPECT_EQ(progress_.position(), 50);
  EXPECT_EQ(progress_.end(), 100);
  EXPECT_EQ(progress_.step_time(), milliseconds(100));
  EXPECT_EQ(progress_.left(), seconds(5));
  ASSERT_EQ(progress_.curve().size(), 5u);
  EXPECT_EQ(progress_.curve()[1], (LossPoint{TimePoint(seconds(2)), 20, 0.05}));
}

TEST_F(RankProgressTest, StepsOfAnEpochThatTheLineNames) {
  Add({.step = 1, .steps = 10, .epoch = 1, .epochs = 3});
  Add({.step = 10, .steps = 10, .epoch = 1, .epochs = 3}, seconds(9));
  Add({.step = 5, .steps = 10, .epoch = 2, .epochs = 3}, seconds(5));
  EXPECT_EQ(progress_.position(), 25);
  EXPECT_EQ(progress_.end(), 40);
  EXPECT_EQ(progress_.left(), seconds(15));
}

TEST_F(RankProgressTest, StepsThatBeginAnewAtTheirEnd) {
  Add({.epoch = 1, .epochs = 2});
  for (int step : {1, 5, 10}) Add({.step = step, .steps = 10});
  Add({.epoch = 2, .epochs = 2});
  Add({.step = 1, .steps = 10});
  EXPECT_EQ(progress_.position(), 11);
  EXPECT_FALSE(progress_.in_epochs());
  EXPECT_EQ(progress_.end(), 20);
}

TEST_F(RankProgressTest, EpochsAlone) {
  Add({.epoch = 1, .epochs = 4, .loss = 2});
  Add({.epoch = 2, .epochs = 4, .loss = NAN}, seconds(10));
  EXPECT_TRUE(progress_.in_epochs());
  EXPECT_EQ(progress_.position(), 2);
  EXPECT_EQ(progress_.left(), seconds(20));
  EXPECT_EQ(progress_.curve().size(), 1u);
  EXPECT_TRUE(std::isnan(*progress_.last().loss));
}

TEST_F(RankProgressTest, EpochsInFractionsBesideStepsOfTheRun) {
  Add({.step = 10, .steps = 100});
  Add({.epoch = 0.2, .loss = 1.5}, milliseconds(1));
  Add({.step = 20, .steps = 100});
  EXPECT_EQ(progress_.position(), 20);
  EXPECT_EQ(progress_.end(), 100);
  EXPECT_EQ(progress_.last().epoch, 0.2);
}

TEST_F(RankProgressTest, AnotherBarCountsWhenTheFirstHasEndedOrIsQuiet) {
  Add({.step = 3, .steps = 100});
  Add({.step = 500, .steps = 1000});
  EXPECT_EQ(progress_.position(), 3);
  Add({.step = 501, .steps = 1000}, seconds(61));
  EXPECT_EQ(progress_.position(), 501);
  Add({.step = 1000, .steps = 1000});
  Add({.step = 1, .steps = 100});
  EXPECT_EQ(progress_.position(), 1);
}

TEST_F(RankProgressTest, AStepBackIsNoSample) {
  Add({.step = 10});
  Add({.step = 12});
  Add({.step = 2});
  EXPECT_EQ(progress_.position(), 2);
  EXPECT_EQ(progress_.step_time(), milliseconds(500));
}

TEST_F(RankProgressTest, TheCurveIsBoundedAndKeepsItsShape) {
  for (int step = 1; step <= 10'000; ++step) Add({.step = step, .loss = 10'000.0 - step}, milliseconds(10));
  const auto& curve = progress_.curve();
  EXPECT_LE(curve.size(), RankProgress::kMostPoints);
  EXPECT_GE(curve.size(), RankProgress::kMostPoints / 2);
  EXPECT_EQ(curve.front().position, 1);
  EXPECT_GT(curve.back().position, 9'900);
  EXPECT_EQ(progress_.step_time(), milliseconds(10));
}

TEST_F(RankProgressTest, AnEndThatIsTooFarIsNotKnown) {
  Add({.step = 1, .steps = kMaxSteps});
  Add({.step = 2, .steps = kMaxSteps}, seconds(1000));
  EXPECT_EQ(progress_.step_time(), seconds(1000));
  EXPECT_EQ(progress_.left(), std::nullopt);
}

}  // namespace
}  // namespace muster::agent

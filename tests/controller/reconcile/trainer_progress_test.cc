// SPDX-License-Identifier: Apache-2.0
#include "controller/reconcile/trainer_progress.h"

#include <gtest/gtest.h>

#include <limits>

namespace muster::controller {
namespace {

using namespace std::chrono_literals;

TrainingFacts Steps(double position, std::optional<double> end = std::nullopt) {
  return {.position = position, .end = end};
}

TEST(TrainerProgress, Percents) {
  EXPECT_EQ(PercentOf(Steps(5)), std::nullopt);
  EXPECT_EQ(PercentOf(Steps(5, 0)), std::nullopt);
  EXPECT_EQ(PercentOf(Steps(0, 10)), 0);
  EXPECT_EQ(PercentOf(Steps(999, 1000)), 99);
  EXPECT_EQ(PercentOf(Steps(1000, 1000)), 100);
  EXPECT_EQ(PercentOf(Steps(1e16, 1)), 100);
}

TEST(TrainerProgress, MovesOnByAPercentOrATenth) {
  struct Row {
    const char* what;
    std::optional<TrainingFacts> told, now;
    bool moved;
  };
  const Row rows[] = {{"nothing yet", {}, {}, false},
                      {"the first word", {}, Steps(1), true},
                      {"silence", Steps(1), {}, false},
                      {"half a percent", Steps(100, 1000), Steps(105, 1000), false},
                      {"a percent", Steps(100, 1000), Steps(110, 1000), true},
                      {"back", Steps(110, 1000), Steps(100, 1000), true},
                      {"the end becomes known", Steps(100), Steps(101, 1000), true},
                      {"the end is not known any more", Steps(100, 1000), Steps(101), true},
                      {"less than a tenth", Steps(100), Steps(109), false},
                      {"a tenth", Steps(100), Steps(111), true},
                      {"back to the checkpoint", Steps(100), Steps(90), true},
                      {"another unit", Steps(100), TrainingFacts{.position = 100, .in_epochs = true}, true}};
  for (const Row& row : rows) EXPECT_EQ(MovedOn(row.told, row.now), row.moved) << row.what;
}

TEST(TrainerProgress, HasTheFieldsOfKubeflowTrainer) {
  const WallTime now(1'700'000'000s);
  const TrainingFacts known{.position = 320, .end = 640, .epoch = 0.5, .loss = 0.25, .left = 80500ms};
  EXPECT_EQ(
      TrainerStatusOf(known, now),
      Json::parse(
          R"({"progressPercentage": 50, "estimatedRemainingSeconds": 81, "lastUpdatedTime": "2023-11-14T22:13:20Z",
                            "metrics": [{"name": "step", "value": "320"}, {"name": "epoch", "value": "0.5"},
                                        {"name": "loss", "value": "0.25"}]})"));
  const TrainingFacts odd{.position = 2.5,
                          .in_epochs = true,
                          .epoch = 2.5,
                          .loss = std::numeric_limits<double>::quiet_NaN(),
                          .left = std::chrono::hours(24 * 365 * 200)};
  EXPECT_EQ(TrainerStatusOf(odd, now),
            Json::parse(R"({"estimatedRemainingSeconds": 2147483647, "lastUpdatedTime": "2023-11-14T22:13:20Z",
                            "metrics": [{"name": "epoch", "value": "2.5"}, {"name": "loss", "value": "nan"}]})"));
}

}  // namespace
}  // namespace muster::controller

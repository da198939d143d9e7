// SPDX-License-Identifier: Apache-2.0
#include "controller/api/nearest_names.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace muster::controller {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;

TEST(EditDistance, CountsLetters) {
  struct Row {
    const char *a, *b;
    size_t distance;
  };
  const Row rows[] = {{"", "", 0},           {"", "abc", 3},           {"plain", "plain", 0},
                      {"plane", "plain", 2}, {"kitten", "sitting", 3}, {"trainer", "trianer", 1},
                      {"ab", "ba", 1},       {"abc", "ca", 3}};
  for (const Row& row : rows) {
    EXPECT_EQ(EditDistance(row.a, row.b), row.distance) << row.a << " " << row.b;
    EXPECT_EQ(EditDistance(row.b, row.a), row.distance) << row.b << " " << row.a;
  }
}

TEST(NearestNames, OfSome) {
  const std::vector<std::string> names = {"jax-distributed", "plain", "torch-distributed", "mlx-distributed"};
  EXPECT_THAT(NearestNames("plane", names), ElementsAre("plain"));
  EXPECT_THAT(NearestNames("plan", names), ElementsAre("plain"));
  EXPECT_THAT(NearestNames("torch", names), ElementsAre("torch-distributed"));
  EXPECT_THAT(NearestNames("torch-distribted", names)[0], "torch-distributed");
  EXPECT_THAT(NearestNames("mjx-distributed", names),
              ElementsAre("mlx-distributed", "jax-distributed", "torch-distributed"));
  EXPECT_THAT(NearestNames("q", names), IsEmpty());
  EXPECT_THAT(NearestNames("something else", names), IsEmpty());
  EXPECT_THAT(NearestNames("", names), IsEmpty());
  EXPECT_THAT(NearestNames(std::string(1 << 20, 'x'), names), IsEmpty());
}

}  // namespace
}  // namespace muster::controller

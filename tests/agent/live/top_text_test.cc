// SPDX-License-Identifier: Apache-2.0
// Short numbers and spans for the cells of `muster top`.
#include "agent/live/top_text.h"

#include <gtest/gtest.h>

#include <chrono>

namespace muster::agent {
namespace {

using namespace std::chrono_literals;

TEST(TopText, Spans) {
  const struct {
    Duration span;
    std::string text, age;
  } rows[] = {
      {0ms, "0ms", "0s"},     {-5s, "0ms", "0s"},     {350ms, "350ms", "0s"}, {999ms, "999ms", "0s"},
      {1200ms, "1.2s", "1s"}, {9949ms, "9.9s", "9s"}, {12s, "12s", "12s"},    {59999ms, "60s", "59s"},
      {60s, "60s", "1m"},     {100s, "1m", "1m"},     {99min, "99m", "99m"},  {100min, "1h", "1h"},
      {47h, "47h", "47h"},    {48h, "2d", "2d"},      {240h, "10d", "10d"},
  };
  for (const auto& row : rows) {
    EXPECT_EQ(ShortSpan(row.span), row.text);
    EXPECT_EQ(ShortAge(row.span), row.age);
  }
}

TEST(TopText, Bytes) {
  const struct {
    int64_t bytes;
    std::string text;
  } rows[] = {{-1, "0K"},
              {0, "0K"},
              {1 << 10, "1K"},
              {999 << 10, "999K"},
              {1000 << 10, "1.0M"},
              {12 << 20, "12M"},
              {1 << 30, "1.0G"},
              {int64_t{34} << 30, "34G"},
              {int64_t{1} << 40, "1.0T"},
              {std::numeric_limits<int64_t>::max(), "9999T"}};
  for (const auto& row : rows) EXPECT_EQ(ShortBytes(row.bytes), row.text);
}

TEST(TopText, Numbers) {
  EXPECT_EQ(ShortPosition(250), "250");
  EXPECT_EQ(ShortPosition(1.25), "1.25");
  EXPECT_EQ(ShortPosition(123456789), "1.23e+08");
  EXPECT_EQ(ShortPosition(std::numeric_limits<double>::infinity()), "-");
  EXPECT_EQ(ShortLoss(0.12345), "0.1235");
  EXPECT_EQ(ShortLoss(std::numeric_limits<double>::quiet_NaN()), "-");
  EXPECT_EQ(ShareText(0.001), "1%");
  EXPECT_EQ(ShareText(0), "0%");
  EXPECT_EQ(ShareText(7), "100%");
  EXPECT_TRUE(HasPart("A Node-1", "node"));
  EXPECT_FALSE(HasPart("A Node-1", "node-2"));
  EXPECT_TRUE(HasPart("", ""));
}

}  // namespace
}  // namespace muster::agent

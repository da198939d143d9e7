// SPDX-License-Identifier: Apache-2.0
#include "base/text.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace muster {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;

TEST(Text, WholeNumbers) {
  for (const auto& [text, number] : std::initializer_list<std::pair<const char*, std::optional<int64_t>>>{
           {"0", 0},
           {"-7", -7},
           {"007", 7},
           {"9223372036854775807", INT64_MAX},
           {"9223372036854775808", std::nullopt},
           {"", std::nullopt},
           {"+1", std::nullopt},
           {" 1", std::nullopt},
           {"1x", std::nullopt},
           {"1.0", std::nullopt},
       }) {
    EXPECT_EQ(ParseInt(text), number) << text;
  }
}

TEST(Text, DecimalNumbers) {
  for (const auto& [text, number] : std::initializer_list<std::pair<const char*, std::optional<double>>>{
           {"30", 30},
           {"0.5", 0.5},
           {"-1e3", -1000},
           {"1e999", std::nullopt},
           {"inf", std::nullopt},
           {"nan", std::nullopt},
           {"", std::nullopt},
           {"1s", std::nullopt},
       }) {
    EXPECT_EQ(ParseDouble(text), number) << text;
  }
}

TEST(Text, SplitsStripsAndJoins) {
  EXPECT_TRUE(IsVisible("") && IsVisible("a~!"));
  for (const char* text : {" ", "a b", "a\n", "\x7f", "\xc3\xa4"}) EXPECT_FALSE(IsVisible(text)) << text;
  EXPECT_EQ(Strip(" \t a b\r\n"), "a b");
  EXPECT_EQ(Strip("  "), "");
  EXPECT_EQ(Lower("AbC1\xc3\x84"), "abc1\xc3\x84");
  EXPECT_EQ(Upper("AbC1\xc3\xa4"), "ABC1\xc3\xa4");
  EXPECT_THAT(Split("a,,b", ','), ElementsAre("a", "", "b"));
  EXPECT_THAT(Split(",", ','), ElementsAre("", ""));
  EXPECT_THAT(Split("", ','), IsEmpty());
  EXPECT_THAT(Words(" a \tb\r"), ElementsAre("a", "b"));
  EXPECT_THAT(Words("a"), ElementsAre("a"));
  EXPECT_THAT(Words(" \t"), IsEmpty());
  EXPECT_EQ(Join({"a", "b"}, ", "), "a, b");
  EXPECT_EQ(Join({}, ", "), "");
}

TEST(Text, CountedHasThePlural) {
  EXPECT_EQ(Counted(0, "node"), "0 nodes");
  EXPECT_EQ(Counted(1, "node"), "1 node");
  EXPECT_EQ(Counted(3, "other reason"), "3 other reasons");
}

}  // namespace
}  // namespace muster

// SPDX-License-Identifier: Apache-2.0
#include "initializers/target/staging_lines.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace muster::initializers {
namespace {

using testing::IsEmpty;

StagedRange At(uint64_t offset, uint64_t length, uint32_t crc = 7) { return {{offset, length}, crc}; }

std::string Lines(std::initializer_list<StagedRange> ranges) {
  std::string text;
  for (const StagedRange& range : ranges) text += WriteRangeLine(range);
  return text;
}

using Ranges = std::vector<StagedRange>;

TEST(RangeLines, ComeBackInOrder) {
  EXPECT_EQ(ReadRangeLines(Lines({At(512, 100, 1), At(0, 512, 0xffffffff)}), 1000),
            (Ranges{At(0, 512, 0xffffffff), At(512, 100, 1)}));
  EXPECT_THAT(ReadRangeLines("", 1000), IsEmpty());
}

TEST(RangeLines, EndWhereALineIsNotWhole) {
  const std::string good = Lines({At(0, 10)});
  const std::string whole = good + Lines({At(10, 10)});
  for (size_t cut = good.size(); cut < whole.size(); ++cut) {
    EXPECT_EQ(ReadRangeLines(whole.substr(0, cut), 100), (Ranges{At(0, 10)})) << cut;
  }
  std::string flipped = whole;
  flipped[good.size() + 1] ^= 1;
  EXPECT_EQ(ReadRangeLines(flipped, 100), (Ranges{At(0, 10)}));
  EXPECT_THAT(ReadRangeLines("nonsense\n" + good, 100), IsEmpty());
}

TEST(RangeLines, OutsideTheFileOrTwice) {
  EXPECT_THAT(ReadRangeLines(Lines({At(95, 10)}), 100), IsEmpty());
  EXPECT_THAT(ReadRangeLines(Lines({At(101, 1)}), 100), IsEmpty());
  EXPECT_THAT(ReadRangeLines(Lines({At(5, 0)}), 100), IsEmpty());
  EXPECT_THAT(ReadRangeLines(Lines({At(5, UINT64_MAX)}), 100), IsEmpty());
  EXPECT_EQ(ReadRangeLines(Lines({At(0, 10, 1), At(0, 10, 2), At(5, 10, 3), At(10, 1, 4)}), 100),
            (Ranges{At(0, 10, 1), At(10, 1, 4)}));
}

using Hashes = std::unordered_map<std::string, StagedHash>;

Hashes ReadHashLines(std::string_view text, size_t piece = SIZE_MAX) {
  HashLines lines([](const std::string& name) { return name != "unwanted"; });
  for (; !text.empty(); text.remove_prefix(std::min(piece, text.size()))) lines.Add(text.substr(0, piece));
  return std::move(lines).End();
}

TEST(HashLines, EachStandsForItself) {
  const std::string one = WriteHashLine("one", {"md5:00", true}), two = WriteHashLine("two", {"crc32c:01", false});
  EXPECT_EQ(ReadHashLines(one + two), (Hashes{{"one", {"md5:00", true}}, {"two", {"crc32c:01", false}}}));
  for (size_t cut = 0; cut < one.size(); ++cut) {
    const std::string text = one.substr(0, cut) + "\n" + two;
    EXPECT_EQ(ReadHashLines(text).size(), cut + 1 < one.size() ? 1U : 2U) << cut;
  }
  EXPECT_EQ(ReadHashLines(one + WriteHashLine("one", {"md5:11", false})).at("one"), (StagedHash{"md5:11", false}));
  EXPECT_TRUE(ReadHashLines("\n\nnonsense\n").empty());
}

TEST(HashLines, InPiecesOfAnyLength) {
  const std::string text = WriteHashLine("one", {"md5:00", true}) + WriteHashLine("unwanted", {"md5:00", true}) +
                           WriteHashLine("two", {"crc32c:01", false});
  for (size_t piece = 1; piece <= text.size(); ++piece) {
    EXPECT_EQ(ReadHashLines(text, piece), (Hashes{{"one", {"md5:00", true}}, {"two", {"crc32c:01", false}}})) << piece;
  }
}

TEST(HashLines, TooLongALineIsLeftOutAndTheNextOneIsRead) {
  const std::string text =
      WriteHashLine("long", {std::string(1 << 20, 'x'), true}) + WriteHashLine("two", {"crc32c:01", false});
  for (size_t piece : {size_t{1000}, size_t{4096}, text.size()}) {
    EXPECT_EQ(ReadHashLines(text, piece), (Hashes{{"two", {"crc32c:01", false}}})) << piece;
  }
}

TEST(HashLines, SayWhetherTheEndIsCut) {
  HashLines lines([](const std::string&) { return true; });
  EXPECT_FALSE(lines.cut());
  lines.Add("ab");
  EXPECT_TRUE(lines.cut());
  lines.Add("");
  EXPECT_TRUE(lines.cut());
  lines.Add("c\n");
  EXPECT_FALSE(lines.cut());
}

}  // namespace
}  // namespace muster::initializers

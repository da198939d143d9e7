// SPDX-License-Identifier: Apache-2.0
#include "initializers/transfer/range_size.h"

#include <gtest/gtest.h>

namespace muster::initializers {
namespace {

using std::chrono::milliseconds;

constexpr uint64_t kMiB = 1 << 20;
constexpr uint64_t kPlenty = uint64_t{1} << 40;

TEST(RangeSizeTest, FollowsLatencyAndRate) {
  struct Row {
    const char* what;
    uint64_t bytes;
    Duration waited, took;
    uint64_t left;
    int requests;
    uint64_t next;
  };
  for (const Row& row : {
           Row{"nearby", 16 * kMiB, milliseconds(1), milliseconds(80), kPlenty, 8, 16 * kMiB},
           Row{"far: 20 x 0.1 s at 32 MiB/s", 16 * kMiB, milliseconds(100), milliseconds(500), kPlenty, 8, 64 * kMiB},
           Row{"very far", 16 * kMiB, milliseconds(5000), milliseconds(500), kPlenty, 8, 128 * kMiB},
           Row{"far, near the end", 16 * kMiB, milliseconds(100), milliseconds(500), 240 * kMiB, 8, 30 * kMiB},
           Row{"far, at the end", 16 * kMiB, milliseconds(100), milliseconds(500), 1, 8, 16 * kMiB},
           Row{"slow: 30 s at 256 KiB/s", 16 * kMiB, milliseconds(100), milliseconds(64000), kPlenty, 8, 30 * kMiB / 4},
           Row{"slower than all", 16 * kMiB, milliseconds(100), std::chrono::hours(1), kPlenty, 8, 4 * kMiB},
           Row{"too few to tell", kMiB - 1, milliseconds(5000), milliseconds(1), kPlenty, 8, 16 * kMiB},
           Row{"no time at all", 16 * kMiB, milliseconds(5000), milliseconds(0), kPlenty, 8, 16 * kMiB},
       }) {
    RangeSize size{RangeLimits{}};
    EXPECT_EQ(size.Next(row.left, row.requests), 16 * kMiB) << row.what;
    size.Fetched(row.bytes, row.waited, row.took);
    EXPECT_EQ(size.Next(row.left, row.requests), row.next) << row.what;
  }
}

TEST(RangeSizeTest, OneSlowAnswerIsNotTheRule) {
  RangeSize size{RangeLimits{}};
  for (int i = 0; i < 20; ++i) size.Fetched(16 * kMiB, milliseconds(1), milliseconds(500));
  size.Fetched(16 * kMiB, milliseconds(100), milliseconds(500));
  EXPECT_LT(size.Next(kPlenty, 8), 20 * kMiB);
  for (int i = 0; i < 20; ++i) size.Fetched(16 * kMiB, milliseconds(100), milliseconds(500));
  EXPECT_GT(size.Next(kPlenty, 8), 60 * kMiB);
}

TEST(RangeSizeTest, InOrderTheLeastNearbyAndAtMostTheUsual) {
  struct Row {
    const char* what;
    Duration waited, took;
    uint64_t next;
  };
  for (const Row& row : {
           Row{"nearby", milliseconds(1), milliseconds(80), 4 * kMiB},
           Row{"far", milliseconds(100), milliseconds(500), 16 * kMiB},
           Row{"very far, fast", milliseconds(5000), milliseconds(10), 16 * kMiB},
           Row{"far, slow: 30 s at 0.25 MiB/s", milliseconds(100), milliseconds(64000), 15 * kMiB / 2},
           Row{"far, slower than the least", milliseconds(100), milliseconds(640000), 4 * kMiB},
       }) {
    RangeSize size{RangeLimits{}};
    EXPECT_EQ(size.NextInOrder(), 4 * kMiB) << row.what << ", nothing known yet";
    EXPECT_FALSE(size.near()) << row.what << ", nothing known yet";
    size.Fetched(16 * kMiB, row.waited, row.took);
    EXPECT_EQ(size.NextInOrder(), row.next) << row.what;
    EXPECT_EQ(size.near(), row.waited < milliseconds(20)) << row.what;
  }
}

TEST(RangeSizeTest, WhatWaitsForOthersIsNotFar) {
  RangeSize size{RangeLimits{}};
  for (int i = 0; i < 10; ++i) {
    for (const int waited : {3, 45, 20, 60}) {
      size.Fetched(16 * kMiB, milliseconds(waited), milliseconds(80));
      EXPECT_TRUE(size.near()) << i << ", " << waited;
    }
  }
  for (int i = 0; i < 10; ++i) size.Fetched(16 * kMiB, milliseconds(60), milliseconds(80));
  EXPECT_FALSE(size.near()) << "the one that came soon was long ago";
}

TEST(NextRangeTest, EndsBeforeWhatIsThereBehindAGap) {
  struct Row {
    uint64_t next, size, most, unit;
    std::vector<StagedRange> noted;
    uint64_t length;
  };
  for (const Row& row : std::vector<Row>{
           {0, 100, 64, 4, {}, 64},
           {64, 100, 64, 4, {}, 36},
           {0, 100, 30, 8, {}, 24},           // a multiple of the unit
           {0, 100, 3, 8, {}, 8},             // at least one unit
           {0, 100, 64, 4, {{{16, 8}}}, 16},  // a gap, then noted bytes
           {16, 100, 64, 4, {{{16, 8}}}, 64},
           {16, 100, 64, 4, {{{16, 8}}, {{24, 8}}, {{40, 8}}}, 24},  // noted, a gap, noted again
           {16, 100, 64, 4, {{{0, 8}}, {{16, 8}}, {{24, 60}}}, 64},
           {0, 100, 64, 8, {{{12, 8}}}, 16},  // the noted range begins between two units
           {0, 100, 64, 8, {{{4, 2}}}, 8},
           {0, 100, 64, 8, {{{98, 2}}}, 64},
           {64, 100, 64, 8, {{{98, 2}}}, 36},
       }) {
    const ByteRange range = NextRange(row.next, row.size, row.most, row.unit, row.noted);
    EXPECT_EQ(range.offset, row.next);
    EXPECT_EQ(range.length, row.length) << row.next << " " << row.most << " " << row.unit << " " << row.noted.size();
  }
}

TEST(NotedInTest, FromTheBeginningWithoutAGap) {
  struct Row {
    ByteRange range;
    uint64_t unit;
    std::vector<StagedRange> noted;
    std::vector<uint64_t> ends;
  };
  for (const Row& row : std::vector<Row>{
           {{0, 64}, 1, {}, {}},
           {{0, 64}, 1, {{{0, 8}}, {{8, 7}}, {{15, 9}}, {{40, 8}}}, {8, 15, 24}},
           {{8, 64}, 1, {{{0, 8}}, {{8, 7}}}, {15}},
           {{0, 64}, 1, {{{4, 8}}}, {}},              // not at the start of the range
           {{0, 20}, 1, {{{0, 8}}, {{8, 16}}}, {8}},  // beyond the range
           {{0, 64}, 1, {{{0, 8}}, {{8, 33}}}, {8}},  // longer than a block
           // Noted by writes that could begin anywhere.
           {{0, 64}, 8, {{{0, 8}}, {{8, 8}}, {{16, 7}}, {{23, 9}}}, {8, 16}},
           {{0, 64}, 8, {{{0, 7}}}, {}},
           {{80, 20}, 8, {{{80, 8}}, {{88, 12}}}, {88, 100}},  // the end of the file counts as a multiple
       }) {
    std::vector<uint64_t> ends;
    for (const StagedRange& note : NotedIn(row.range, 100, 32, row.unit, row.noted)) ends.push_back(note.range.end());
    EXPECT_EQ(ends, row.ends) << row.range.offset << " " << row.range.length << " " << row.unit;
  }
}

}  // namespace
}  // namespace muster::initializers

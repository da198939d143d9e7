// SPDX-License-Identifier: Apache-2.0
#include "base/process_stat.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <fstream>
#include <string>

namespace muster {
namespace {

TEST(ProcessStatTest, NameMayHoldAnything) {
  struct Row {
    const char *line, *name;
    char state;
    int64_t parent;
  };
  for (const Row& row : {Row{"7 (sh) S 1 7 7 0\n", "sh", 'S', 1}, Row{"7 (a) b (c)) R 12 7 7 0", "a) b (c)", 'R', 12},
                         Row{"7 () Z 3", "", 'Z', 3}, Row{"7 (two\nlines) D 4", "two\nlines", 'D', 4}}) {
    const auto stat = ProcessStat::Parse(row.line);
    ASSERT_TRUE(stat) << row.line;
    EXPECT_EQ(stat->name(), row.name);
    EXPECT_EQ(stat->state(), row.state);
    EXPECT_EQ(stat->Field(4), row.parent);
  }
}

TEST(ProcessStatTest, WhatIsNoSuchLine) {
  for (const char* line : {"", "7", "7 (sh", "7 sh) S 1", "7 )sh( S 1", "7 (sh)", "7 (sh) ", "7 (sh) SS 1"}) {
    EXPECT_FALSE(ProcessStat::Parse(line)) << line;
  }
}

TEST(ProcessStatTest, FieldsByTheirNumbers) {
  const auto stat = ProcessStat::Parse("7 (sh) S 1 -2 18446744073709551615 9");
  ASSERT_TRUE(stat);
  EXPECT_EQ(stat->Field(5), -2);
  EXPECT_EQ(stat->Field(6), std::nullopt);  // "no limit": beyond int64_t
  EXPECT_EQ(stat->Field(7), 9);
  for (size_t number : {0, 3, 8, 99}) EXPECT_EQ(stat->Field(number), std::nullopt) << number;
}

TEST(ProcessStatTest, DeadOnesAreZombiesAndWhatIsTakenDown) {
  for (const char state : std::string("RSDTtZXI")) {
    const auto stat = ProcessStat::Parse(std::string("7 (sh) ") + state + " 1");
    ASSERT_TRUE(stat);
    EXPECT_EQ(stat->dead(), state == 'Z' || state == 'X') << state;
  }
}

TEST(ProcessStatTest, OfThisThread) {
  std::ifstream file("/proc/thread-self/stat");
  std::string line;
  ASSERT_TRUE(std::getline(file, line));
  const auto stat = ProcessStat::Parse(line);
  ASSERT_TRUE(stat);
  EXPECT_EQ(stat->Field(4), getppid());
  EXPECT_EQ(stat->Field(5), getpgrp());
}

}  // namespace
}  // namespace muster

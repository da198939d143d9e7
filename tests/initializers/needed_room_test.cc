// SPDX-License-Identifier: Apache-2.0
#include "initializers/target/needed_room.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>

namespace muster::initializers {
namespace {

using ::testing::HasSubstr;

Status Check(const NeededRoom& needed, const DiskRoom& room) { return needed.Check(room, "s3://b/p", "/target"); }

TEST(NeededRoom, FilesTakeWholePages) {
  NeededRoom needed;
  EXPECT_TRUE(Check(needed, {0, 0}).ok());
  needed.Add(1, 0);
  needed.Add(4097, 0);
  EXPECT_TRUE(Check(needed, {3 * 4096, 2}).ok());
  const Status status = Check(needed, {3 * 4096 - 1, 2});
  EXPECT_TRUE(absl::IsResourceExhausted(status));
  EXPECT_THAT(std::string(status.message()), HasSubstr("s3://b/p needs 12288 bytes and 12287 are free in /target"));
}

TEST(NeededRoom, WhatIsHeldIsNotNeededOnceMore) {
  NeededRoom needed;
  needed.Add(8192, 4096);
  needed.Add(1, 8192);  // it has more than it needs
  EXPECT_TRUE(Check(needed, {4096, 0}).ok());
  EXPECT_FALSE(Check(needed, {4095, 0}).ok());
}

TEST(NeededRoom, FilesAreCountedWhereTheFileSystemDoes) {
  NeededRoom needed;
  needed.Add(0, 0);
  EXPECT_TRUE(Check(needed, {0, std::nullopt}).ok());
  const Status status = Check(needed, {0, 0});
  EXPECT_TRUE(absl::IsResourceExhausted(status));
  EXPECT_THAT(std::string(status.message()), HasSubstr("s3://b/p has 1 files and there is room for 0 more in /target"));
}

}  // namespace
}  // namespace muster::initializers

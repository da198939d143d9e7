// SPDX-License-Identifier: Apache-2.0
// How much memory a zstd frame needs, and how much it gets. Content: archive_reader_test.cc, extract_test.py.
#include "initializers/archives/decompress.h"

#include <gtest/gtest.h>

#include <string>

namespace muster::initializers {
namespace {

using namespace std::string_literals;

constexpr uint64_t kMiB = uint64_t{1} << 20;

// Source: RFC 8878 section 3.1.1.1.
TEST(Decompress, WindowOfAFrame) {
  const std::string magic = "\x28\xb5\x2f\xfd";
  const struct {
    std::string header;
    uint64_t expected;
  } rows[] = {
      {magic + "\x04\x88"s, 128 * kMiB},  // zstd --long=27
      {magic + "\x04\x58"s, 2 * kMiB},    // zstd -3
      {magic + "\x04\x68"s, 8 * kMiB},
      {magic + "\x00\x00"s, 1024},
      {magic + "\x00\x01"s, 1024 + 128},
      {magic + "\x04\xff"s, (uint64_t{1} << 41) + 7 * (uint64_t{1} << 38)},
      // A single segment: the window is the content, whose length follows the number of a dictionary.
      {magic + "\x24\x05"s, 5},
      {magic + "\x64\x05\x00"s, 256 + 5},
      {magic + "\xa4\x00\x00\x00\x10"s, 256 * kMiB},
      {magic + "\xa5\x07\x00\x00\x00\x10"s, 256 * kMiB},
      {magic + "\xa7\x07\x07\x07\x07\x00\x00\x00\x10"s, 256 * kMiB},
      {magic + "\xe4\x00\x00\x00\x00\x00\x00\x00\x80"s, uint64_t{1} << 63},
      // No frame, or cut short.
      {magic + "\xa4\x00\x00\x00"s, 0},
      {magic + "\x04"s, 0},
      {magic, 0},
      {"", 0},
      {"\x50\x2a\x4d\x18\x04\x00\x00\x00"s, 0},  // skippable
      {"plain text that is none", 0},
  };
  for (const auto& row : rows)
    EXPECT_EQ(WindowOfFrame(row.header), row.expected) << ::testing::PrintToString(row.header);
}

TEST(Decompress, WindowsWithinAMemoryLimit) {
  const struct {
    std::optional<int64_t> memory;
    int readers;
    uint64_t most, beside;
  } rows[] = {
      {std::nullopt, 8, 128 * kMiB, 16 * kMiB},      {int64_t{64} << 20, 4, 8 * kMiB, 2 * kMiB},
      {int64_t{16} << 20, 4, 8 * kMiB, 2 * kMiB},    {0, 0, 8 * kMiB, 8 * kMiB},
      {int64_t{120} << 20, 4, 64 * kMiB, 16 * kMiB}, {int64_t{1} << 40, 8, 128 * kMiB, 16 * kMiB},
      {INT64_MAX, 1, 128 * kMiB, 128 * kMiB},
  };
  for (const auto& row : rows) {
    WindowLimits limits;
    BoundWindows(row.memory, row.readers, &limits);
    EXPECT_EQ(limits.most, row.most) << row.memory.value_or(-1);
    EXPECT_EQ(limits.beside, row.beside) << row.memory.value_or(-1);
  }
}

}  // namespace
}  // namespace muster::initializers

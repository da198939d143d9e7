// SPDX-License-Identifier: Apache-2.0
#include "initializers/archives/zip_window.h"

#include <gtest/gtest.h>

#include <string>

namespace muster::initializers {
namespace {

using namespace std::string_literals;

constexpr uint64_t kMiB = uint64_t{1} << 20;

TEST(ZipWindow, OfEachMethod) {
  const std::string xz = "\xfd" + "7zXZ\0\0\x04\0\0\0\0"s;  // header of a stream
  const struct {
    std::string method, data;
    uint64_t expected;
  } rows[] = {
      {"lzma", "\x09\x04\x05\x00\x5d\x00\x00\x80\x00more"s, 8 * kMiB},  // written by Python
      {"lzma", "\x09\x04\x05\x00\x5d\xff\xff\xff\xff"s, UINT32_MAX},
      {"lzma", "\x09\x04\x05\x00\x5d\x00\x00\x80"s, 0},
      {"xz", xz + "\x02\x00\x21\x01\x16\x00\x00\x00"s, 8 * kMiB},           // xz -6
      {"xz", xz + "\x02\x00\x21\x01\x1c\x00\x00\x00"s, 64 * kMiB},          // xz -9
      {"xz", xz + "\x03\xc0\x80\x80\x01\xff\x7f\x21\x01\x17"s, 12 * kMiB},  // with both lengths before the filter
      {"xz", xz + "\x03\x01\x04\x00\x21\x01\x1e"s, 128 * kMiB},             // after the x86 filter
      {"xz", xz + "\x03\x01\x03\x01\x00\x21\x01\x28"s, UINT32_MAX},         // after a delta filter
      {"xz", xz + "\x02\x00\x21\x01\x29"s, 0},
      {"xz", xz + "\x02\x00\x21\x01"s, 0},
      {"xz", xz + "\x02\x03\x03\xff\xff\xff\xff\xff\xff\xff\xff\xff\x01\x21\x01\x28"s, 0},
      {"xz", xz, 0},
      {"ppmd-8", "\xf5\x00more"s, 16 * kMiB},
      {"ppmd-8", "\xff\x0f"s, 256 * kMiB},
      {"ppmd-8", "\xf5"s, 0},
      {"zstd", "\x28\xb5\x2f\xfd\x04\x88"s, 128 * kMiB},
      {"deflation", "\x09\x04\x05\x00\x5d\x00\x00\x80\x00"s, 0},
      {"", "", 0},
  };
  for (const auto& row : rows) {
    EXPECT_EQ(WindowOfMember(row.method, row.data, uint64_t{1} << 40), row.expected)
        << row.method << ' ' << ::testing::PrintToString(row.data);
  }
}

TEST(ZipWindow, IsNoWiderThanWhatItRemembers) {
  EXPECT_EQ(WindowOfMember("lzma", "\x09\x04\x05\x00\x5d\xff\xff\xff\xff"s, 1000), 1000U);
  EXPECT_EQ(WindowOfMember("ppmd-8", "\xf5\x00"s, 1000), 16 * kMiB);
}

}  // namespace
}  // namespace muster::initializers

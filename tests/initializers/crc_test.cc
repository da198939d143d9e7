// SPDX-License-Identifier: Apache-2.0
// Every implementation of a CRC, against a bitwise one by the definition. digest_test.cc has values of other programs.
#include "initializers/facts/crc.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <memory>
#include <random>

#include "initializers/facts/crc_cpu.h"
#include "tests/base/made_bytes.h"

namespace muster::initializers {
namespace {

template <typename Word>
Word ByTheBit(Word state, std::string_view bytes, Word polynomial) {
  for (unsigned char byte : bytes) {
    state ^= byte;
    for (int bit = 0; bit < 8; ++bit) state = (state >> 1) ^ (state & 1 ? polynomial : 0);
  }
  return state;
}

std::vector<CrcUpdates> AllWays() {
  std::vector<CrcUpdates> ways = CpuCrcUpdates();
  ways.push_back(TableCrcUpdates());
  return ways;
}

void ExpectRight(const CrcUpdates& way, uint64_t state, std::string_view bytes, size_t misaligned) {
  // Exactly as long as the text, so that a sanitizer detects a read beyond it.
  const auto memory = std::make_unique<char[]>(misaligned + bytes.size());
  std::copy(bytes.begin(), bytes.end(), memory.get() + misaligned);
  const auto* data = reinterpret_cast<const unsigned char*>(memory.get()) + misaligned;
  const auto small = static_cast<uint32_t>(state);
  EXPECT_EQ(way.crc32(small, data, bytes.size()), ByTheBit<uint32_t>(small, bytes, 0xEDB88320))
      << way.name << ", " << bytes.size() << " bytes";
  EXPECT_EQ(way.crc32c(small, data, bytes.size()), ByTheBit<uint32_t>(small, bytes, 0x82F63B78))
      << way.name << ", " << bytes.size() << " bytes";
  EXPECT_EQ(way.crc64_nvme(state, data, bytes.size()), ByTheBit<uint64_t>(state, bytes, 0x9A6C9329AC4BC9B5))
      << way.name << ", " << bytes.size() << " bytes";
}

TEST(Crc, EveryWayEveryShortLength) {
  const std::string bytes = MadeBytes(700, 1);
  for (const CrcUpdates& way : AllWays()) {
    SCOPED_TRACE(std::string(way.name));
    for (size_t size = 0; size <= bytes.size(); ++size) {
      ExpectRight(way, 0x0123456789abcdef * (size + 1), std::string_view(bytes).substr(0, size), size % 16);
    }
  }
}

TEST(Crc, EveryWayAnyLength) {
  const std::string bytes = MadeBytes(20'000, 2);
  std::mt19937_64 random(3);
  for (const CrcUpdates& way : AllWays()) {
    for (int i = 0; i < 50; ++i) {
      const size_t start = random() % bytes.size();
      const size_t size = random() % (bytes.size() - start + 1);
      ExpectRight(way, random(), std::string_view(bytes).substr(start, size), random() % 64);
    }
  }
}

// Single bits at each place, so that each factor of the folding counts.
TEST(Crc, EveryWaySingleBits) {
  for (const CrcUpdates& way : AllWays()) {
    for (size_t at = 0; at < 600; at += 7) {
      std::string bytes(600, '\0');
      bytes[at] = static_cast<char>(1 << at % 8);
      ExpectRight(way, 0, bytes, 0);
    }
  }
}

TEST(Crc, GoesOnFromAnEarlierValue) {
  const std::string bytes = MadeBytes(3'000, 4);
  const std::string_view text = bytes;
  for (size_t split : {0, 1, 100, 1'500, 2'999, 3'000}) {
    EXPECT_EQ(Crc32(Crc32(0, text.substr(0, split)), text.substr(split)), Crc32(0, text));
    EXPECT_EQ(Crc32c(Crc32c(0, text.substr(0, split)), text.substr(split)), Crc32c(0, text));
    EXPECT_EQ(Crc64Nvme(Crc64Nvme(0, text.substr(0, split)), text.substr(split)), Crc64Nvme(0, text));
  }
  EXPECT_EQ(Crc32(0x12345678, {}), 0x12345678U);
}

TEST(Crc, CombinesWithNothing) {
  EXPECT_EQ(CombineCrc32(0xcbf43926, 0, 0), 0xcbf43926U);
  EXPECT_EQ(CombineCrc32(0, 0xcbf43926, 9), 0xcbf43926U);
  EXPECT_EQ(CombineCrc64Nvme(0xae8b14860a799888, 0, 0), 0xae8b14860a799888U);
  EXPECT_EQ(CombineCrc64Nvme(0, 0xae8b14860a799888, 9), 0xae8b14860a799888U);
}

}  // namespace
}  // namespace muster::initializers

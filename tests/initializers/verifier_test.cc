// SPDX-License-Identifier: Apache-2.0
// A file's hash from the hashes of its ranges: any order and cut for CRCs, by parts for composite values.
#include "initializers/facts/verifier.h"

#include <gmock/gmock.h>

#include <algorithm>
#include <random>

#include "base/text.h"
#include "tests/base/made_bytes.h"
#include "tests/initializers/hash_of.h"

namespace muster::initializers {
namespace {

constexpr size_t kSize = 1'000'003;

std::string_view File() {
  static const std::string file = MadeBytes(kSize, 28);
  return file;
}

void AddRange(Verifier* verifier, uint64_t offset, uint64_t length) {
  verifier->Add(offset, length, HashOf(verifier->kind(), File().substr(offset, length)));
}

// Hashes of File(), by Python's hashlib and zlib and by AWS's CRCs; composite ones with parts of 300,000 bytes.
constexpr std::string_view kWhole[] = {
    "sha256:e5a41960ccf3ae42ad2f1f2dff0c88910ecb1fe069f992289ce3bc8e307ddef8",
    "sha1:4907f234b6a4265f0d9f645159f01c6892b153f5",
    "git-blob:0f2015b3a7774e4596779b7c5e91c7b72d9ee970",
    "md5:13fd44445c374c7eddc045d21145dcf0",
    "crc32:46c6b964",
    "crc32c:b7328b71",
    "crc64nvme:eafed602ac0f3e4d",
};
constexpr std::string_view kComposite[] = {
    "md5/300000:b6089f0290122312a0f2d8f4472bb28e",
    "sha1/300000:6c0ef6a9afeac36317ab21ffff9a87a2bb3d96ad",
    "sha256/300000:3f6c7069b0dd8b5bf323b5e5b34d5c7ba7af26cb39602e1790ebdf070c5d40cd",
    "crc32/300000:7b641825",
    "crc32c/300000:74ee4f6a",
    "crc64nvme/300000:5a88d423275eff50",
};

// Cuts [0, kSize) at random, never across a border of `piece`, and shuffles the ranges.
std::vector<std::pair<uint64_t, uint64_t>> Ranges(uint64_t piece, bool cut, std::mt19937* random) {
  std::vector<std::pair<uint64_t, uint64_t>> ranges;
  for (uint64_t start = 0; start < kSize;) {
    const uint64_t border = std::min<uint64_t>(kSize, (start / piece + 1) * piece);
    const uint64_t length = cut ? 1 + (*random)() % (border - start) : border - start;
    ranges.emplace_back(start, length);
    start += length;
  }
  std::shuffle(ranges.begin(), ranges.end(), *random);
  return ranges;
}

void ExpectVerifies(std::string_view text, std::mt19937* random) {
  SCOPED_TRACE(std::string(text));
  const Expectation expected = *ParseExpectation(text);
  Verifier verifier(kSize, expected);
  EXPECT_EQ(verifier.kind(), expected.kind);
  EXPECT_EQ(verifier.PieceSize(), expected.part_size == 0 ? kSize : expected.part_size);
  EXPECT_EQ(verifier.AnyRange(), Combines(expected.kind));
  for (auto [offset, length] : Ranges(verifier.PieceSize(), verifier.AnyRange(), random)) {
    EXPECT_FALSE(verifier.complete());
    AddRange(&verifier, offset, length);
  }
  EXPECT_TRUE(verifier.complete());
  EXPECT_EQ(ToHex(verifier.Value()), ToHex(expected.value));
  EXPECT_EQ(verifier.Mismatch(), std::nullopt);
}

TEST(Verifier, AHashOfTheWholeFileIsVerified) {
  std::mt19937 random(1);
  for (std::string_view text : kWhole) {
    for (int i = 0; i < 20; ++i) ExpectVerifies(text, &random);
  }
}

TEST(Verifier, ACompositeHashIsVerified) {
  std::mt19937 random(2);
  for (std::string_view text : kComposite) {
    for (int i = 0; i < 20; ++i) ExpectVerifies(text, &random);
  }
}

TEST(Verifier, ManySmallRanges) {
  std::vector<uint64_t> order(1'000);
  for (size_t i = 0; i < order.size(); ++i) order[i] = i;
  std::mt19937 random(3);
  for (int run = 0; run < 5; ++run) {
    std::shuffle(order.begin(), order.end(), random);
    Verifier verifier(order.size(),
                      Expectation{HashKind::kCrc64Nvme, HashOf(HashKind::kCrc64Nvme, File().substr(0, 1'000))});
    for (uint64_t at : order) AddRange(&verifier, at, 1);
    EXPECT_EQ(verifier.Mismatch(), std::nullopt);
  }
}

TEST(Verifier, OtherContentIsAMismatch) {
  for (std::string_view text : kWhole) {
    Expectation expected = *ParseExpectation(text);
    expected.value[1] ^= 1;
    Verifier verifier(kSize, expected);
    AddRange(&verifier, 0, kSize);
    EXPECT_EQ(verifier.Mismatch(), fmt::format("the content is wrong: expected {}, got {}", Describe(expected), text));
  }
  Expectation expected = *ParseExpectation(kComposite[0]);
  Verifier verifier(kSize, expected);
  AddRange(&verifier, 0, 300'000);
  AddRange(&verifier, 300'000, 300'000);
  verifier.Add(600'000, 300'000, HashOf(HashKind::kMd5, "other"));
  AddRange(&verifier, 900'000, 100'003);
  EXPECT_THAT(verifier.Mismatch().value_or(""), ::testing::HasSubstr("expected md5/300000:b6089f02"));
}

TEST(Verifier, WithoutAnExpectationItHashesByCrc32c) {
  Verifier verifier(kSize, std::nullopt);
  EXPECT_EQ(verifier.kind(), HashKind::kCrc32c);
  AddRange(&verifier, 500'000, kSize - 500'000);
  EXPECT_EQ(verifier.Mismatch(), "500003 bytes have been hashed where the file has 1000003");
  AddRange(&verifier, 0, 500'000);
  EXPECT_TRUE(verifier.complete());
  EXPECT_EQ(ToHex(verifier.Value()), "b7328b71");
  EXPECT_EQ(verifier.Mismatch(), std::nullopt);
}

TEST(Verifier, AnEmptyFileIsVerified) {
  const std::string_view rows[] = {
      "sha256:e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855",
      "git-blob:e69de29bb2d1d6434b8b29ae775ad8c2e48c5391",
      "md5:d41d8cd98f00b204e9800998ecf8427e",
      "crc32c:00000000",
      "md5/8388608:59adb24ef3cdbe0297f05b395827453f",  // a multipart upload of one empty part
  };
  for (std::string_view row : rows) {
    Verifier verifier(0, *ParseExpectation(row));
    EXPECT_TRUE(verifier.complete());
    EXPECT_EQ(verifier.Mismatch(), std::nullopt) << row;
    verifier.Add(0, 0, HashOf(verifier.kind(), ""));
    EXPECT_EQ(verifier.Mismatch(), std::nullopt) << row;
  }
  Verifier wrong(0, Expectation{HashKind::kCrc32c, "\1\2\3\4"});
  EXPECT_EQ(wrong.Mismatch(), "the content is wrong: expected crc32c:01020304, got crc32c:00000000");
}

TEST(Verifier, PartsLargerThanTheFile) {
  const Expectation expected = {HashKind::kMd5, HashOf(HashKind::kMd5, HashOf(HashKind::kMd5, File())), 8 << 20};
  Verifier verifier(kSize, expected);
  EXPECT_EQ(verifier.PieceSize(), kSize);
  AddRange(&verifier, 0, kSize);
  EXPECT_EQ(verifier.Mismatch(), std::nullopt);
}

TEST(Verifier, FaultyRangesNeverPass) {
  const Expectation expected = *ParseExpectation(kWhole[5]);
  Verifier twice(kSize, expected);
  AddRange(&twice, 0, kSize);
  AddRange(&twice, 0, 10);
  EXPECT_FALSE(twice.complete());
  Verifier beyond(kSize, expected);
  beyond.Add(0, kSize + 1, expected.value);
  EXPECT_FALSE(beyond.complete());
  beyond.Add(~uint64_t{0}, 1, expected.value);
  EXPECT_NE(beyond.Mismatch(), std::nullopt);
  Verifier hole(kSize, expected);
  AddRange(&hole, 0, 10);
  AddRange(&hole, 11, kSize - 11);
  EXPECT_EQ(hole.Mismatch(), "1000002 bytes have been hashed where the file has 1000003");
  AddRange(&hole, 0, 1);  // the number of bytes is right now, the ranges are not
  EXPECT_FALSE(hole.complete());
  Verifier empty(0, Expectation{HashKind::kCrc32c, std::string(4, '\0')});
  empty.Add(0, 1, "abcd");
  empty.Add(1, 1, "abcd");
  EXPECT_FALSE(empty.complete());
}

}  // namespace
}  // namespace muster::initializers

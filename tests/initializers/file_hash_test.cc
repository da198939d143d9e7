// SPDX-License-Identifier: Apache-2.0
#include "initializers/disk/file_hash.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <boost/asio/io_context.hpp>
#include <random>
#include <thread>

#include "initializers/disk/blocks.h"
#include "initializers/facts/crc.h"
#include "tests/initializers/hash_of.h"

namespace muster::initializers {
namespace {

std::string SomeBytes(size_t count) {
  std::mt19937 random(5);
  std::string bytes(count, '\0');
  for (char& c : bytes) c = static_cast<char>(random());
  return bytes;
}

TEST(PieceHash, CutsAtPieces) {
  const std::string bytes = SomeBytes(250);
  PieceHash hash(HashKind::kMd5, 100, 100);
  for (size_t at = 0; at < bytes.size(); at += 33) hash.Update(std::string_view(bytes).substr(at, 33));
  const auto values = hash.Finish();
  ASSERT_EQ(values.size(), 3u);
  const uint64_t lengths[] = {100, 100, 50};
  for (size_t i = 0; i < 3; ++i) {
    EXPECT_EQ(values[i].offset, 100 + 100 * i);
    EXPECT_EQ(values[i].length, lengths[i]);
    EXPECT_EQ(values[i].value, HashOf(HashKind::kMd5, bytes.substr(100 * i, 100)));
  }
}

TEST(PieceHash, BeginsWithinAPieceOfACrc) {
  const std::string bytes = SomeBytes(80);
  PieceHash hash(HashKind::kCrc32c, 100, 50);
  hash.Update(bytes);
  const auto values = hash.Finish();
  ASSERT_EQ(values.size(), 2u);
  EXPECT_EQ(values[0].length, 50u);
  EXPECT_EQ(values[1].offset, 100u);
  EXPECT_EQ(values[1].value, HashOf(HashKind::kCrc32c, bytes.substr(50)));
}

// For each kind of hash: bytes whose CRC-32C is known, within pieces and across their ends.
TEST(PieceHash, OfBytesThatAreKnown) {
  const std::string all = SomeBytes(1000);
  for (HashKind kind : {HashKind::kSha256, HashKind::kMd5, HashKind::kCrc32, HashKind::kCrc32c, HashKind::kCrc64Nvme}) {
    for (size_t step : {1, 50, 70, 100, 300}) {
      PieceHash plain(kind, 100, 0), known(kind, 100, 0);
      for (size_t at = 0; at < all.size(); at += step) {
        const std::string_view bytes = std::string_view(all).substr(at, step);
        plain.Update(bytes);
        known.UpdateKnown(bytes, Crc32c(0, bytes));
      }
      const auto want = plain.Finish(), got = known.Finish();
      ASSERT_EQ(got.size(), 10u);
      for (size_t i = 0; i < got.size(); ++i) {
        EXPECT_EQ(got[i].offset, want[i].offset);
        EXPECT_EQ(got[i].length, want[i].length);
        EXPECT_EQ(got[i].value, want[i].value) << HashName(kind) << " by " << step;
      }
    }
  }
}

TEST(PieceHash, ACrc32cThatIsKnownIsNotTakenAgain) {
  const std::string bytes = SomeBytes(60), others(60, 'x');
  PieceHash hash(HashKind::kCrc32c, 100, 0);
  hash.UpdateKnown(others, Crc32c(0, bytes));
  EXPECT_EQ(hash.Finish().at(0).value, HashOf(HashKind::kCrc32c, bytes));
}

TEST(PieceHash, OfNothing) { EXPECT_TRUE(PieceHash(HashKind::kMd5, 100, 0).Finish().empty()); }

TEST(OrderedHash, TakesRangesInAnyOrder) {
  const std::string bytes = SomeBytes(5 * kBlockBytes + 17);
  std::mt19937 random(7);
  for (int round = 0; round < 20; ++round) {
    std::string disk(bytes.size(), '\0');
    OrderedHash hash(HashKind::kGitBlob, bytes.size(), [&disk](uint64_t offset, char* into, size_t length) {
      const size_t now = std::min<size_t>(length, disk.size() - offset);
      std::copy_n(disk.data() + offset, now, into);
      return StatusOr<size_t>(now);
    });
    std::vector<size_t> offsets;
    for (size_t at = 0; at < bytes.size(); at += 200'000) offsets.push_back(at);
    std::shuffle(offsets.begin(), offsets.end(), random);
    for (size_t at : offsets) {
      const std::string part = bytes.substr(at, 200'000);
      disk.replace(at, part.size(), part);
      hash.Written({at, part.size()});
      // Hashes none, a part, or all of it.
      ASSERT_TRUE(hash.HashTo(std::uniform_int_distribution<uint64_t>(0, hash.written())(random)).ok());
    }
    EXPECT_EQ(hash.written(), bytes.size());
    ASSERT_TRUE(hash.HashTo(bytes.size()).ok());
    EXPECT_EQ(hash.Finish(), HashOf(HashKind::kGitBlob, bytes));
  }
}

// Bytes that found a block are hashed from it, also in several steps, and never read. Other bytes are read back.
TEST(OrderedHash, ReadsBackOnlyWhatWasNotKept) {
  const std::string bytes = SomeBytes(6 * kBlockBytes + 17);
  boost::asio::io_context loop;
  auto ahead = std::make_shared<Blocks>(loop, 3);
  uint64_t read = 0;
  OrderedHash hash(
      HashKind::kSha256, bytes.size(),
      [&](uint64_t offset, char* into, size_t length) {
        std::copy_n(bytes.data() + offset, length, into);
        read += length;
        return StatusOr<size_t>(length);
      },
      ahead);
  const auto keep = [&](uint64_t offset, size_t length) {
    auto block = hash.RoomAt(offset);
    ASSERT_NE(block, nullptr) << offset;
    std::copy_n(bytes.data() + offset, length, block->data);
    block->used = length;
    hash.Keep(offset, std::move(block));
  };
  keep(kBlockBytes, kBlockBytes);
  keep(0, 1000);  // a range that ends within a block
  EXPECT_EQ(hash.RoomAt(3 * kBlockBytes), nullptr) << "farther ahead than all blocks together hold";
  hash.Written({0, 2 * kBlockBytes});
  ASSERT_TRUE(hash.HashTo(300).ok());
  EXPECT_EQ(read, 0u);
  ASSERT_TRUE(hash.HashTo(kBlockBytes + 100).ok());
  EXPECT_EQ(read, kBlockBytes - 1000) << "the gap, and not what is kept behind it";
  ASSERT_TRUE(hash.HashTo(2 * kBlockBytes).ok());
  EXPECT_EQ(read, kBlockBytes - 1000);
  keep(3 * kBlockBytes, kBlockBytes);
  keep(4 * kBlockBytes, kBlockBytes);
  keep(2 * kBlockBytes, kBlockBytes);
  EXPECT_EQ(hash.RoomAt(2 * kBlockBytes + 1), nullptr) << "all are in use";
  hash.Written({2 * kBlockBytes, bytes.size() - 2 * kBlockBytes});
  ASSERT_TRUE(hash.HashTo(bytes.size()).ok());
  EXPECT_EQ(read, 2 * kBlockBytes + 17 - 1000);
  EXPECT_EQ(hash.Finish(), HashOf(HashKind::kSha256, bytes));
  std::vector<std::shared_ptr<Block>> back;
  for (int i = 0; i < 3; ++i) back.push_back(ahead->Take());
  EXPECT_NE(back.back(), nullptr) << "all have been given back";
}

// Hashes in passing from the start, or after the bytes that the hashing thread has hashed; never out of order.
TEST(OrderedHash, HashesInPassingOnlyWhatIsNext) {
  const std::string bytes = SomeBytes(3 * kBlockBytes);
  const std::string_view all = bytes;
  OrderedHash hash(HashKind::kSha256, bytes.size(), [&bytes](uint64_t offset, char* into, size_t length) {
    std::copy_n(bytes.data() + offset, length, into);
    return StatusOr<size_t>(length);
  });
  EXPECT_FALSE(hash.HashInPassing(100, all.substr(100, 100)));
  EXPECT_TRUE(hash.HashInPassing(0, all.substr(0, 100)));
  EXPECT_FALSE(hash.HashInPassing(0, all.substr(0, 100)));
  EXPECT_EQ(hash.hashed(), 100u) << "before it is said to be written";
  EXPECT_EQ(hash.written(), 0u);
  EXPECT_FALSE(hash.AwaitMore(Duration::zero()));
  hash.Written({0, 100});
  EXPECT_FALSE(hash.AwaitMore(Duration::zero()));
  hash.Written({100, kBlockBytes});
  EXPECT_TRUE(hash.AwaitMore(Duration::zero()));
  EXPECT_FALSE(hash.HashInPassing(100 + kBlockBytes, all.substr(100 + kBlockBytes, 100)));
  ASSERT_TRUE(hash.HashTo(100 + kBlockBytes).ok());
  EXPECT_TRUE(hash.HashInPassing(100 + kBlockBytes, all.substr(100 + kBlockBytes)));
  EXPECT_EQ(hash.Finish(), HashOf(HashKind::kSha256, bytes));
}

TEST(OrderedHash, IsWrittenUpToTheFirstGap) {
  OrderedHash hash(HashKind::kSha256, 40, [](uint64_t, char*, size_t) { return StatusOr<size_t>(0); });
  hash.Written({20, 10});
  hash.Written({10, 10});
  EXPECT_EQ(hash.written(), 0u);
  hash.Written({0, 10});
  EXPECT_EQ(hash.written(), 30u);
  hash.Written({30, 10});
  EXPECT_EQ(hash.written(), 40u);
}

// Two threads write; one hashes what is written and waits for more, until everything is hashed.
TEST(OrderedHash, HashesBesideThoseThatWrite) {
  const std::string bytes = SomeBytes(3 << 20);
  constexpr size_t kPart = 64 << 10;
  OrderedHash hash(HashKind::kSha256, bytes.size(), [&bytes](uint64_t offset, char* into, size_t length) {
    std::copy_n(bytes.data() + offset, length, into);
    return StatusOr<size_t>(length);
  });
  EXPECT_FALSE(hash.AwaitMore(Duration::zero())) << "nothing is written";
  const auto write = [&](size_t from) {
    for (size_t at = from; at < bytes.size(); at += 2 * kPart) hash.Written({at, std::min(kPart, bytes.size() - at)});
  };
  std::thread even(write, 0), odd(write, kPart);
  while (hash.AwaitMore(std::chrono::minutes(1))) ASSERT_TRUE(hash.HashTo(hash.written()).ok());
  even.join();
  odd.join();
  EXPECT_EQ(hash.hashed(), bytes.size());
  EXPECT_EQ(hash.Finish(), HashOf(HashKind::kSha256, bytes));
}

TEST(OrderedHash, AFileThatGotShorter) {
  OrderedHash hash(HashKind::kSha256, 20, [](uint64_t, char*, size_t) { return StatusOr<size_t>(0); });
  hash.Written({0, 20});
  EXPECT_EQ(hash.HashTo(20).code(), absl::StatusCode::kDataLoss);
}

}  // namespace
}  // namespace muster::initializers

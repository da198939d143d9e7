// SPDX-License-Identifier: Apache-2.0
#include "initializers/transfer/range_intake.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/resource.h>

#include <csignal>
#include <filesystem>
#include <fstream>

#include "base/text.h"
#include "initializers/facts/crc.h"
#include "tests/base/made_bytes.h"
#include "tests/initializers/hash_of.h"

namespace muster::initializers {
namespace {

using Taken = http::Intake::Taken;

constexpr uint64_t kMore = 3 * 4096 + 5;

class RangeIntakeTest : public testing::Test {
 protected:
  RangeIntakeTest() {
    std::string pattern = testing::TempDir() + "muster-range-XXXXXX";
    folder_ = mkdtemp(pattern.data());
    staging_ = *Staging::Open(folder_);
  }
  ~RangeIntakeTest() override { std::filesystem::remove_all(folder_); }

  std::shared_ptr<StagedFile> Open(bool direct) {
    auto opened = staging_->OpenFile("file", data_.size(), direct);
    EXPECT_TRUE(opened.ok()) << opened.status();
    return *std::move(opened);
  }
  std::string Content() const {
    std::ifstream file(folder_ + "/.muster/staging/file.part", std::ios::binary);
    return std::string{std::istreambuf_iterator<char>(file), {}}.substr(0, data_.size());
  }
  std::vector<StagedRange> Noted() const {
    std::ifstream file(folder_ + "/.muster/staging/file.ranges", std::ios::binary);
    return ReadRangeLines(std::string{std::istreambuf_iterator<char>(file), {}}, data_.size());
  }
  RangeIntake::Owner Owner() {
    return {[this] { ++starved_; },
            [this](ByteRange what, const Status& status) {
              written_ += what.length;
              ++told_;
              if (!status.ok()) failure_ = status;
            }};
  }
  std::string_view Of(uint64_t offset, uint64_t length) const { return std::string_view(data_).substr(offset, length); }

  const std::string data_ = MadeBytes(3 * kBlockBytes + kMore, 1);
  boost::asio::io_context loop_;
  Blocks blocks_{loop_, 2};
  std::string folder_;
  std::unique_ptr<Staging> staging_;
  int starved_ = 0, told_ = 0;
  uint64_t written_ = 0;
  Status failure_;
};

// With deliveries of any size, with and without direct I/O: checks the bytes, their hash, and a note for each block.
TEST_F(RangeIntakeTest, WritesHashesAndNotes) {
  for (const bool direct : {false, true}) {
    for (const size_t delivery : {size_t{1000}, size_t{16384}, size_t{65536}, size_t{262144}, kBlockBytes}) {
      SCOPED_TRACE(fmt::format("direct {}, {} at a time", direct, delivery));
      staging_->Drop("file");
      written_ = 0, told_ = 0;
      auto staged = Open(direct);
      auto hash = std::make_shared<PieceHash>(HashKind::kCrc64Nvme, data_.size(), 0);
      RangeIntake intake({0, data_.size()}, blocks_, staged, {.range = hash}, Owner());
      for (size_t at = 0; at < data_.size(); at += delivery) {
        ASSERT_EQ(intake.Take(Of(at, delivery)), Taken::kAll);
      }
      EXPECT_EQ(failure_, absl::OkStatus());
      EXPECT_EQ(intake.received(), data_.size());
      EXPECT_EQ(written_, data_.size());
      EXPECT_EQ(told_, 4);
      EXPECT_EQ(Content(), data_);
      const auto values = hash->Finish();
      ASSERT_EQ(values.size(), 1u);
      EXPECT_EQ(values[0].value, HashOf(HashKind::kCrc64Nvme, data_));
      const auto noted = Noted();
      ASSERT_EQ(noted.size(), 4u);
      for (const StagedRange& note : noted) {
        EXPECT_EQ(note.crc32c, Crc32c(0, Of(note.range.offset, note.range.length)));
        EXPECT_EQ(note.range.offset % kBlockBytes, 0u);
      }
      EXPECT_EQ(noted.back().range.length, kMore);
    }
  }
}

// A range within a file; an answer that ends within a block is continued there.
TEST_F(RangeIntakeTest, GoesOnWhereItsAnswerEnded) {
  auto staged = Open(false);
  const ByteRange range{kBlockBytes, 2 * kBlockBytes};
  RangeIntake intake(range, blocks_, staged, {}, Owner());
  EXPECT_EQ(intake.Take(Of(range.offset, 100)), Taken::kAll);
  EXPECT_EQ(written_, 0u);
  EXPECT_TRUE(Noted().empty());
  for (uint64_t at = range.offset + 100; at < range.end(); at += 10000) {
    ASSERT_EQ(intake.Take(Of(at, std::min<uint64_t>(10000, range.end() - at))), Taken::kAll);
  }
  EXPECT_EQ(written_, range.length);
  EXPECT_EQ(Content().substr(range.offset, range.length), Of(range.offset, range.length));
  ASSERT_EQ(Noted().size(), 2u);
  EXPECT_EQ(Noted()[0].range, (ByteRange{kBlockBytes, kBlockBytes}));
}

// Keeps whole blocks for the hash of the file while there is room; other bytes are read back.
TEST_F(RangeIntakeTest, KeepsForAHashInOrderWhatFindsRoom) {
  for (const size_t room : {1, 2, 8}) {
    for (const size_t delivery : {size_t{1000}, size_t{65536}, kBlockBytes + 7}) {
      SCOPED_TRACE(fmt::format("{} blocks, {} at a time", room, delivery));
      staging_->Drop("file");
      written_ = 0;
      auto staged = Open(false);
      auto ahead = std::make_shared<Blocks>(loop_, room);
      uint64_t read = 0;
      auto ordered = std::make_shared<OrderedHash>(
          HashKind::kSha256, data_.size(),
          [&read, staged](uint64_t offset, char* bytes, size_t length) {
            read += length;
            return staged->Read(offset, bytes, length);
          },
          ahead);
      RangeIntake intake({0, data_.size()}, blocks_, staged, {.file = ordered}, Owner());
      for (size_t at = 0; at < data_.size(); at += delivery) {
        ASSERT_EQ(intake.Take(Of(at, delivery)), Taken::kAll);
      }
      EXPECT_EQ(written_, data_.size());
      EXPECT_EQ(Content(), data_);
      EXPECT_EQ(Noted().size(), 4u);
      ordered->Written({0, data_.size()});
      ASSERT_TRUE(ordered->HashTo(data_.size()).ok());
      EXPECT_EQ(read, data_.size() - std::min<uint64_t>(data_.size(), room * kBlockBytes));
      EXPECT_EQ(ordered->Finish(), HashOf(HashKind::kSha256, data_));
    }
  }
}

// Hashes bytes that are next in order as they pass, without keeping or reading them back. Keeps bytes that come early.
TEST_F(RangeIntakeTest, HashesInPassingWhatComesInItsTurn) {
  for (const size_t delivery : {size_t{1000}, size_t{16384}, size_t{40000}, size_t{262144}, kBlockBytes + 7}) {
    SCOPED_TRACE(fmt::format("{} at a time", delivery));
    staging_->Drop("file");
    written_ = 0;
    auto staged = Open(false);
    auto ahead = std::make_shared<Blocks>(loop_, 4);
    auto ordered = std::make_shared<OrderedHash>(
        HashKind::kSha256, data_.size(),
        [](uint64_t, char*, size_t) -> StatusOr<size_t> { return absl::UnknownError("read back"); }, ahead);
    const auto take = [&](ByteRange range) {
      RangeIntake intake(range, blocks_, staged, {.file = ordered, .in_passing = true}, Owner());
      while (range.length > 0) {
        const uint64_t now = std::min<uint64_t>(delivery, range.length);
        ASSERT_EQ(intake.Take(Of(range.offset, now)), Taken::kAll);
        range = {range.offset + now, range.length - now};
      }
    };
    take({2 * kBlockBytes, kBlockBytes});
    EXPECT_EQ(ordered->hashed(), 0u);
    take({0, 2 * kBlockBytes});
    EXPECT_EQ(ordered->hashed(), 2 * kBlockBytes) << "nobody was asked to";
    ASSERT_TRUE(ordered->HashTo(ordered->written()).ok());
    take({3 * kBlockBytes, kMore});
    EXPECT_EQ(ordered->hashed(), data_.size());
    EXPECT_EQ(ordered->written(), data_.size());
    EXPECT_EQ(Content(), data_);
    const auto noted = Noted();
    ASSERT_EQ(noted.size(), 4u);
    for (const StagedRange& note : noted) EXPECT_LE(note.range.length, kBlockBytes);
    EXPECT_EQ(ordered->Finish(), HashOf(HashKind::kSha256, data_));
  }
}

TEST_F(RangeIntakeTest, WaitsForABlockAndHasOneFromThenOn) {
  auto staged = Open(false);
  auto one = blocks_.Take();
  const auto other = blocks_.Take();
  RangeIntake intake({0, data_.size()}, blocks_, staged, {}, Owner());
  EXPECT_EQ(intake.Take(Of(0, 1000)), Taken::kNotNow);
  EXPECT_EQ(starved_, 1);
  EXPECT_EQ(intake.received(), 0u);
  intake.Give(std::move(one));
  for (size_t at = 0; at < data_.size(); at += 100000) ASSERT_EQ(intake.Take(Of(at, 100000)), Taken::kAll);
  EXPECT_EQ(starved_, 1);
  EXPECT_EQ(Content(), data_);
}

TEST_F(RangeIntakeTest, WhatCannotBeWrittenIsToldOnceAndNothingMoreIsTaken) {
  auto staged = Open(false);
  RangeIntake intake({0, data_.size()}, blocks_, staged, {}, Owner());
  rlimit before{};
  ASSERT_EQ(getrlimit(RLIMIT_FSIZE, &before), 0);
  const auto handler = std::signal(SIGXFSZ, SIG_IGN);
  const rlimit small{kBlockBytes + 100, before.rlim_max};
  ASSERT_EQ(setrlimit(RLIMIT_FSIZE, &small), 0);
  Taken word = Taken::kAll;
  for (size_t at = 0; at < data_.size() && word == Taken::kAll; at += 100000) word = intake.Take(Of(at, 100000));
  const Taken later = intake.Take(Of(0, 10));
  ASSERT_EQ(setrlimit(RLIMIT_FSIZE, &before), 0);
  std::signal(SIGXFSZ, handler);
  EXPECT_EQ(word, Taken::kNotNow);
  EXPECT_EQ(later, Taken::kNotNow);
  EXPECT_FALSE(failure_.ok());
  EXPECT_EQ(told_, 2);
  EXPECT_EQ(written_, kBlockBytes);
  ASSERT_EQ(Noted().size(), 1u);
}

}  // namespace
}  // namespace muster::initializers

// Where the bytes of one range of a large file go, on the thread that receives them: into a block, and from there
// hashed, written and noted (RangeWriter) or handed over to whom their order matters (RangeFiller).
//
// It lives through all answers that bring the range: where one ends, also within a block, the next goes on. Its owner's
// calls come on the receiving thread.
#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <memory>
#include <mutex>

#include "base/status.h"
#include "initializers/blocks.h"
#include "initializers/file_hash.h"
#include "initializers/http.h"
#include "initializers/provider.h"
#include "initializers/staging.h"

namespace muster::initializers {

class RangeIntake : public HttpIntake {
 public:
  // Bytes that have come. Any thread.
  uint64_t received() const { return received_.load(std::memory_order_relaxed); }
  // What it was starved of. Any thread.
  void Give(std::shared_ptr<Block> block);

 protected:
  RangeIntake(ByteRange range, Blocks& blocks, std::function<void()> starved)
      : at_(range.offset), end_(range.end()), blocks_(blocks), starved_(std::move(starved)) {}

  // One that was given, or is free; null: it has said that it is starved.
  std::shared_ptr<Block> NextBlock();
  // As many of them as `block` has room for up to `most`; takes them off `bytes`.
  void Fill(Block& block, size_t most, std::string_view* bytes);
  void Count(size_t bytes) { received_.fetch_add(bytes, std::memory_order_relaxed); }
  uint64_t at() const { return at_; }  // offset in the file of what comes next
  bool whole() const { return at_ == end_; }

 private:
  uint64_t at_;
  const uint64_t end_;
  Blocks& blocks_;
  const std::function<void()> starved_;
  std::atomic<uint64_t> received_ = 0;
  std::mutex mutex_;
  std::shared_ptr<Block> given_;
};

// Hashes and writes a step at a time, while it is in the core's cache. What could not be written ends it: it takes
// nothing any more, and waits to be cancelled.
class RangeWriter final : public RangeIntake {
 public:
  struct Owner {
    std::function<void()> starved;                        // to be resumed once it has been given a block
    std::function<void(uint64_t bytes, Status)> written;  // and noted: so many more. An error is the last call
  };
  // `hash`: of the range; null: none is wanted.
  RangeWriter(ByteRange range, Blocks& blocks, std::shared_ptr<StagedFile> staged, std::shared_ptr<PieceHash> hash,
              Owner owner);
  Taken Take(std::string_view bytes) override;

 private:
  Status Step();

  const std::shared_ptr<StagedFile> staged_;
  const std::shared_ptr<PieceHash> hash_;
  const std::function<void(uint64_t, Status)> written_;
  const size_t step_;
  std::shared_ptr<Block> block_;
  StagedRange run_;  // written and not noted
  bool failed_ = false;
};

class RangeFiller final : public RangeIntake {
 public:
  struct Owner {
    std::function<void()> starved;
    std::function<void(std::shared_ptr<Block> block, uint64_t offset)> filled;  // the last may not be full
  };
  RangeFiller(ByteRange range, Blocks& blocks, Owner owner);
  Taken Take(std::string_view bytes) override;

 private:
  const std::function<void(std::shared_ptr<Block>, uint64_t)> filled_;
  std::shared_ptr<Block> block_;
};

}  // namespace muster::initializers

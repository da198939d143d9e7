// SPDX-License-Identifier: Apache-2.0
// Receives the bytes of one range of a large file, on the receiving thread. It hashes and writes them step by step,
// while they are in the cache of that core, and notes them block by block.
//
// One intake serves all answers that bring the range: where one answer ends, even within a block, the next continues.
// After a failed write it takes no more and waits to be cancelled. Owner's functions are called on the receiving
// thread.
#pragma once

#include <algorithm>
#include <atomic>
#include <cstdint>
#include <functional>
#include <memory>
#include <mutex>
#include <string_view>

#include "base/status.h"
#include "http/client.h"
#include "initializers/disk/blocks.h"
#include "initializers/disk/file_hash.h"
#include "initializers/facts/provider.h"
#include "initializers/target/staging.h"

namespace muster::initializers {

class RangeIntake final : public http::Intake {
 public:
  struct Owner {
    std::function<void()> starved;                        // no block is free: call Give, then resume the transfer
    std::function<void(ByteRange what, Status)> written;  // and noted, in order. An error is the last call
  };
  // `range`: hash of the range. `file`: hash of the file, in order; it is told what is written, and may keep the bytes;
  // `in_passing`: bytes that are next in order for it are hashed here. Null: not wanted.
  struct Hashes {
    std::shared_ptr<PieceHash> range;
    std::shared_ptr<OrderedHash> file;
    bool in_passing = false;
  };
  RangeIntake(ByteRange range, Blocks& blocks, std::shared_ptr<StagedFile> staged, Hashes hashes, Owner owner);
  Taken Take(std::string_view bytes) override;
  // Number of bytes received. Any thread.
  uint64_t received() const { return received_.load(std::memory_order_relaxed); }
  // Gives the block that `starved` asked for. Any thread.
  void Give(std::shared_ptr<Block> block);

 private:
  std::shared_ptr<Block> NextBlock();
  bool whole() const { return at_ == end_; }
  size_t wanted() const { return std::min(step_, kBlockBytes - run_.range.length) - gathered_; }  // by the step
  void BeginRun();
  std::string_view Gather(std::string_view bytes);
  Status Step(std::string_view bytes);

  uint64_t at_;  // offset in the file of the next byte
  const uint64_t end_;
  Blocks& blocks_;
  const std::shared_ptr<StagedFile> staged_;
  const Hashes hashes_;
  const Owner owner_;
  const size_t step_;
  std::atomic<uint64_t> received_ = 0;
  std::mutex mutex_;
  std::shared_ptr<Block> given_;  // guarded by mutex_
  std::shared_ptr<Block> block_;  // where the bytes of each step gather, one step after the other
  std::shared_ptr<Block> kept_;   // where the steps of this run gather, side by side; null: in `block_`
  size_t gathered_ = 0;           // bytes of the current step
  StagedRange run_;               // written, not noted yet
  bool failed_ = false;
};

}  // namespace muster::initializers

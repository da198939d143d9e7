// Where the bytes of one range of a large file go, on the thread that receives them: hashed and written a step at a
// time, while they are in that core's cache, and noted a block at a time.
//
// It lives through all answers that bring the range: where one ends, also within a block, the next goes on. What could
// not be written ends it: it takes nothing any more, and waits to be cancelled. Its owner's calls come on the receiving
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
#include "initializers/blocks.h"
#include "initializers/file_hash.h"
#include "initializers/provider.h"
#include "initializers/staging.h"

namespace muster::initializers {

class RangeIntake final : public http::Intake {
 public:
  struct Owner {
    std::function<void()> starved;                        // to be resumed once it has been given a block
    std::function<void(ByteRange what, Status)> written;  // and noted, in turn. An error is the last call
  };
  // What is hashed here, or may be: `range`: of the range; `file`: of the file, in order, which is told what is written
  // and may keep it, `in_passing`: it hashes here what comes in its turn. Null: none is wanted.
  struct Hashes {
    std::shared_ptr<PieceHash> range;
    std::shared_ptr<OrderedHash> file;
    bool in_passing = false;
  };
  RangeIntake(ByteRange range, Blocks& blocks, std::shared_ptr<StagedFile> staged, Hashes hashes, Owner owner);
  Taken Take(std::string_view bytes) override;
  // Bytes that have come. Any thread.
  uint64_t received() const { return received_.load(std::memory_order_relaxed); }
  // What it was starved of. Any thread.
  void Give(std::shared_ptr<Block> block);

 private:
  std::shared_ptr<Block> NextBlock();
  bool whole() const { return at_ == end_; }
  size_t wanted() const { return std::min(step_, kBlockBytes - run_.range.length) - gathered_; }  // by the step
  void BeginRun();
  std::string_view Gather(std::string_view bytes);
  Status Step(std::string_view bytes);

  uint64_t at_;  // offset in the file of what comes next
  const uint64_t end_;
  Blocks& blocks_;
  const std::shared_ptr<StagedFile> staged_;
  const Hashes hashes_;
  const Owner owner_;
  const size_t step_;
  std::atomic<uint64_t> received_ = 0;
  std::mutex mutex_;
  std::shared_ptr<Block> given_;  // by mutex_
  std::shared_ptr<Block> block_;  // where steps gather, one after the other
  std::shared_ptr<Block> kept_;   // where those of this run do, side by side; null: in `block_`
  size_t gathered_ = 0;           // bytes of the step
  StagedRange run_;               // written and not noted
  bool failed_ = false;
};

}  // namespace muster::initializers

#include "initializers/range_intake.h"

#include <algorithm>
#include <cstring>
#include <utility>

#include "initializers/crc.h"

namespace muster::initializers {
namespace {

// Bytes that are hashed at a time, and written: they stay in a core's cache, and a call to the kernel is a small part
// of them. Past the page cache a disk wants more at once.
constexpr size_t kStep = 64 << 10;

}  // namespace

RangeIntake::RangeIntake(ByteRange range, Blocks& blocks, std::shared_ptr<StagedFile> staged,
                         std::shared_ptr<PieceHash> hash, std::shared_ptr<OrderedHash> ordered, Owner owner)
    : at_(range.offset),
      end_(range.end()),
      blocks_(blocks),
      staged_(std::move(staged)),
      hash_(std::move(hash)),
      ordered_(std::move(ordered)),
      owner_(std::move(owner)),
      step_(staged_->direct() ? kBlockBytes : kStep),
      run_{{range.offset, 0}, 0} {}

void RangeIntake::Give(std::shared_ptr<Block> block) {
  const std::lock_guard lock(mutex_);
  given_ = std::move(block);
}

// One that was given, or is free; null: it has said that it is starved.
std::shared_ptr<Block> RangeIntake::NextBlock() {
  std::shared_ptr<Block> block;
  {
    const std::lock_guard lock(mutex_);
    block = std::exchange(given_, nullptr);
  }
  if (!block) block = blocks_.Take();
  if (!block) owner_.starved();
  return block;
}

HttpIntake::Taken RangeIntake::Take(std::string_view bytes) {
  if (!failed_ && !block_) block_ = NextBlock();
  if (failed_ || !block_) return Taken::kNotNow;
  received_.fetch_add(bytes.size(), std::memory_order_relaxed);
  while (!bytes.empty() && !failed_) {
    if (ordered_ && gathered_ == 0 && run_.range.length == 0) kept_ = ordered_->RoomAt(at_);
    const size_t now = std::min(bytes.size(), step_ - gathered_);
    std::memcpy(step() + gathered_, bytes.data(), now);
    gathered_ += now;
    at_ += now;
    bytes.remove_prefix(now);
    if (gathered_ < step_ && !whole()) continue;
    Status status = Step();
    failed_ = !status.ok();
    if (failed_) owner_.written({at_, 0}, std::move(status));
  }
  return Taken::kAll;
}

char* RangeIntake::step() { return kept_ ? kept_->data + run_.range.length : block_->data; }

Status RangeIntake::Step() {
  char* const begin = step();
  const std::string_view bytes(begin, std::exchange(gathered_, 0));
  const uint32_t crc32c = Crc32c(0, bytes);
  if (hash_) hash_->UpdateKnown(bytes, crc32c);
  MUSTER_RETURN_IF_ERROR(staged_->Write(at_ - bytes.size(), begin, bytes.size()));
  run_.crc32c = CombineCrc32c(run_.crc32c, crc32c, bytes.size());
  run_.range.length += bytes.size();
  if (run_.range.length < kBlockBytes && !whole()) return absl::OkStatus();
  MUSTER_RETURN_IF_ERROR(staged_->Note(run_));
  if (kept_) {
    kept_->used = run_.range.length;
    ordered_->Keep(run_.range.offset, std::move(kept_));
  }
  if (ordered_) ordered_->Written(run_.range);
  owner_.written(run_.range, absl::OkStatus());
  run_ = {{at_, 0}, 0};
  return absl::OkStatus();
}

}  // namespace muster::initializers

// SPDX-License-Identifier: Apache-2.0
#include "initializers/transfer/range_intake.h"

#include <algorithm>
#include <cstring>
#include <utility>

#include "initializers/facts/crc.h"

namespace muster::initializers {
namespace {

// Bytes that are hashed and written in one step: they fit into a core's cache, and the cost of a system call is small
// for them (libcurl gives at most 16 KiB). With direct I/O a step is larger, because a disk wants more at once.
constexpr size_t kStep = 64 << 10;

}  // namespace

RangeIntake::RangeIntake(ByteRange range, Blocks& blocks, std::shared_ptr<StagedFile> staged, Hashes hashes,
                         Owner owner)
    : at_(range.offset),
      end_(range.end()),
      blocks_(blocks),
      staged_(std::move(staged)),
      hashes_(std::move(hashes)),
      owner_(std::move(owner)),
      step_(staged_->direct() ? kBlockBytes : kStep),
      run_{{range.offset, 0}, 0} {}

void RangeIntake::Give(std::shared_ptr<Block> block) {
  const std::lock_guard lock(mutex_);
  given_ = std::move(block);
}

// A given block, or a free one; null: there is none, and `starved` was called.
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

http::Intake::Taken RangeIntake::Take(std::string_view bytes) {
  if (!failed_ && !block_) block_ = NextBlock();
  if (failed_ || !block_) return Taken::kNotNow;
  received_.fetch_add(bytes.size(), std::memory_order_relaxed);
  while (!bytes.empty() && !failed_) {
    if (run_.range.length == 0 && gathered_ == 0) BeginRun();
    const std::string_view now = bytes.substr(0, wanted());
    bytes.remove_prefix(now.size());
    at_ += now.size();
    const std::string_view step = Gather(now);
    if (step.empty()) continue;
    Status status = Step(step);
    failed_ = !status.ok();
    if (failed_) owner_.written({at_, 0}, std::move(status));
  }
  return Taken::kAll;
}

void RangeIntake::BeginRun() {
  if (!hashes_.file || (hashes_.in_passing && hashes_.file->hashed() == at_)) return;
  kept_ = hashes_.file->RoomAt(at_);
}

// Adds the bytes to the current step. Returns the step if it is complete, else an empty view.
std::string_view RangeIntake::Gather(std::string_view bytes) {
  char* const begin = kept_ ? kept_->data + run_.range.length : block_->data;
  std::memcpy(begin + gathered_, bytes.data(), bytes.size());
  gathered_ += bytes.size();
  if (wanted() > 0 && !whole()) return {};
  return {begin, std::exchange(gathered_, 0)};
}

Status RangeIntake::Step(std::string_view bytes) {
  const uint32_t crc32c = Crc32c(0, bytes);
  const uint64_t offset = at_ - bytes.size();
  if (hashes_.range) hashes_.range->UpdateKnown(bytes, crc32c);
  if (hashes_.file && hashes_.in_passing && !kept_) hashes_.file->HashInPassing(offset, bytes);
  MUSTER_RETURN_IF_ERROR(staged_->Write(offset, bytes));
  run_.crc32c = CombineCrc32c(run_.crc32c, crc32c, bytes.size());
  run_.range.length += bytes.size();
  if (run_.range.length < kBlockBytes && !whole()) return absl::OkStatus();
  MUSTER_RETURN_IF_ERROR(staged_->Note(run_));
  if (kept_) {
    kept_->used = run_.range.length;
    hashes_.file->Keep(run_.range.offset, std::move(kept_));
  }
  if (hashes_.file) hashes_.file->Written(run_.range);
  owner_.written(run_.range, absl::OkStatus());
  run_ = {{at_, 0}, 0};
  return absl::OkStatus();
}

}  // namespace muster::initializers

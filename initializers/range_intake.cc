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

void RangeIntake::Give(std::shared_ptr<Block> block) {
  const std::lock_guard lock(mutex_);
  given_ = std::move(block);
}

std::shared_ptr<Block> RangeIntake::NextBlock() {
  std::shared_ptr<Block> block;
  {
    const std::lock_guard lock(mutex_);
    block = std::exchange(given_, nullptr);
  }
  if (!block) block = blocks_.Take();
  if (!block) starved_();
  return block;
}

void RangeIntake::Fill(Block& block, size_t most, std::string_view* bytes) {
  const size_t now = std::min(bytes->size(), most - block.used);
  std::memcpy(block.data + block.used, bytes->data(), now);
  block.used += now;
  at_ += now;
  bytes->remove_prefix(now);
}

RangeWriter::RangeWriter(ByteRange range, Blocks& blocks, std::shared_ptr<StagedFile> staged,
                         std::shared_ptr<PieceHash> hash, Owner owner)
    : RangeIntake(range, blocks, std::move(owner.starved)),
      staged_(std::move(staged)),
      hash_(std::move(hash)),
      written_(std::move(owner.written)),
      step_(staged_->direct() ? kBlockBytes : kStep),
      run_{{range.offset, 0}, 0} {}

HttpIntake::Taken RangeWriter::Take(std::string_view bytes) {
  if (failed_ || (!block_ && !(block_ = NextBlock()))) return Taken::kNotNow;
  Count(bytes.size());
  while (!bytes.empty() && !failed_) {
    Fill(*block_, step_, &bytes);
    if (block_->used < step_ && !whole()) continue;
    Status status = Step();
    failed_ = !status.ok();
    if (failed_) written_(0, std::move(status));
  }
  return Taken::kAll;
}

Status RangeWriter::Step() {
  const std::string_view bytes(block_->data, block_->used);
  const uint32_t crc32c = Crc32c(0, bytes);
  if (hash_) hash_->UpdateKnown(bytes, crc32c);
  MUSTER_RETURN_IF_ERROR(staged_->Write(at() - bytes.size(), block_->data, bytes.size()));
  run_.crc32c = CombineCrc32c(run_.crc32c, crc32c, bytes.size());
  run_.range.length += bytes.size();
  block_->used = 0;
  if (run_.range.length < kBlockBytes && !whole()) return absl::OkStatus();
  MUSTER_RETURN_IF_ERROR(staged_->Note(run_));
  written_(run_.range.length, absl::OkStatus());
  run_ = {{at(), 0}, 0};
  return absl::OkStatus();
}

RangeFiller::RangeFiller(ByteRange range, Blocks& blocks, Owner owner)
    : RangeIntake(range, blocks, std::move(owner.starved)), filled_(std::move(owner.filled)) {}

HttpIntake::Taken RangeFiller::Take(std::string_view bytes) {
  const size_t room = block_ ? kBlockBytes - block_->used : 0;
  std::shared_ptr<Block> next;  // all of what comes or nothing: it is a block's at most
  if (bytes.size() > room && !(next = NextBlock())) return Taken::kNotNow;
  Count(bytes.size());
  while (!bytes.empty()) {
    if (!block_) block_ = std::move(next);
    Fill(*block_, kBlockBytes, &bytes);
    if (block_->used < kBlockBytes && !whole()) continue;
    const uint64_t offset = at() - block_->used;
    filled_(std::move(block_), offset);
  }
  return Taken::kAll;
}

}  // namespace muster::initializers

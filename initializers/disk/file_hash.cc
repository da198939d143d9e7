// SPDX-License-Identifier: Apache-2.0
#include "initializers/disk/file_hash.h"

#include <unistd.h>

#include <algorithm>

#include "base/text.h"

namespace muster::initializers {

constexpr size_t kReadBytes = 256 << 10;  // bytes at a time, so that they stay in the core's cache

void PieceHash::Update(std::string_view bytes) {
  while (!bytes.empty()) {
    if (!hasher_) hasher_ = Hasher::Make(kind_, piece_);
    const uint64_t room = piece_ - (offset_ + length_) % piece_;
    const std::string_view now = bytes.substr(0, std::min<uint64_t>(room, bytes.size()));
    hasher_->Update(now);
    length_ += now.size();
    bytes.remove_prefix(now.size());
    if (now.size() == room) EndPiece();
  }
}

void PieceHash::UpdateKnown(std::string_view bytes, uint32_t crc32c) {
  const uint64_t room = piece_ - (offset_ + length_) % piece_;
  if (bytes.empty() || bytes.size() > room) return Update(bytes);
  if (!hasher_) hasher_ = Hasher::Make(kind_, piece_);
  hasher_->UpdateKnown(bytes, crc32c);
  length_ += bytes.size();
  if (bytes.size() == room) EndPiece();
}

void PieceHash::EndPiece() {
  values_.push_back({offset_, length_, hasher_->Finish()});
  hasher_.reset();
  offset_ += length_;
  length_ = 0;
}

std::vector<PieceHash::Value> PieceHash::Finish() {
  if (hasher_) EndPiece();
  return std::move(values_);
}

ReadAt ReadAtOf(int file) {
  return [file](uint64_t offset, char* bytes, size_t length) -> StatusOr<size_t> {
    while (true) {
      const ssize_t got = pread(file, bytes, length, static_cast<off_t>(offset));
      if (got >= 0) return static_cast<size_t>(got);
      if (errno != EINTR) return ErrnoStatus(errno, "reading");
    }
  };
}

StatusOr<ContentHash> HashContent(const ReadAt& read, uint64_t size, const std::optional<Expectation>& expected,
                                  std::span<char> buffer, const std::function<bool()>& stop) {
  Verifier verifier(size, expected);
  PieceHash hash(verifier.kind(), std::max<uint64_t>(1, verifier.PieceSize()), 0);
  uint64_t at = 0;
  while (true) {
    if (stop()) return absl::CancelledError("stopped");
    MUSTER_ASSIGN_OR_RETURN(size_t got, read(at, buffer.data(), buffer.size()));
    if (got == 0) break;
    if (got > size - at) return absl::DataLossError(fmt::format("it is longer than {} bytes", size));
    hash.Update({buffer.data(), got});
    at += got;
  }
  if (at != size) return absl::DataLossError(fmt::format("it is {} bytes long in place of {}", at, size));
  for (auto& value : hash.Finish()) verifier.Add(value.offset, value.length, std::move(value.value));
  return ContentHash{Describe({verifier.kind(), verifier.Value(), expected ? expected->part_size : 0}),
                     verifier.Mismatch()};
}

namespace {

// For bytes in the cache of another core: prefetches a page while the page before it is hashed. Without that, a hash by
// the CPU's own instructions waits for a third of its time.
void UpdateFromAfar(Hasher& hasher, std::string_view bytes) {
  constexpr size_t kPage = 4096, kLine = 64;
  while (!bytes.empty()) {
    const size_t now = std::min(bytes.size(), kPage);
    const size_t ahead = std::min(bytes.size(), 2 * kPage);
    for (size_t at = now; at < ahead; at += kLine) __builtin_prefetch(bytes.data() + at);
    hasher.Update(bytes.substr(0, now));
    bytes.remove_prefix(now);
  }
}

}  // namespace

OrderedHash::OrderedHash(HashKind kind, uint64_t size, ReadAt read, std::shared_ptr<Blocks> ahead)
    : size_(size), read_(std::move(read)), ahead_(std::move(ahead)), hasher_(Hasher::Make(kind, size)) {}

void OrderedHash::Written(ByteRange range) {
  {
    const std::lock_guard lock(mutex_);
    if (range.offset != written_) {
      behind_.emplace(range.offset, range.end());
      return;
    }
    uint64_t end = range.end();
    for (auto next = behind_.begin(); next != behind_.end() && next->first == end; next = behind_.erase(next)) {
      end = next->second;
    }
    written_ = end;
  }
  more_.notify_one();
}

bool OrderedHash::AwaitMore(Duration at_most) {
  if (hashed_ == size_) return false;
  std::unique_lock lock(mutex_);
  return more_.wait_for(lock, at_most, [this] { return written_ > hashed_; });
}

// Gives no room beyond the capacity of all blocks: the next bytes in order must always find room.
std::shared_ptr<Block> OrderedHash::RoomAt(uint64_t offset) {
  if (!ahead_ || offset >= hashed_ + ahead_->count() * kBlockBytes) return nullptr;
  return ahead_->Take();
}

void OrderedHash::Keep(uint64_t offset, std::shared_ptr<Block> block) {
  const std::lock_guard lock(mutex_);
  kept_.emplace(offset, std::move(block));
}

bool OrderedHash::HashInPassing(uint64_t offset, std::string_view bytes) {
  const std::unique_lock lock(hashing_, std::try_to_lock);
  if (!lock || hashed_ != offset) return false;
  hasher_->Update(bytes);
  hashed_ += bytes.size();
  return true;
}

OrderedHash::Next OrderedHash::NextTo(uint64_t wanted) {
  const std::lock_guard lock(mutex_);
  if (kept_.empty()) return {.length = std::min<uint64_t>(wanted, kReadBytes)};
  const auto& [begin, block] = *kept_.begin();
  if (begin > hashed_) return {.length = std::min<uint64_t>({wanted, kReadBytes, begin - hashed_})};
  const size_t offset = hashed_ - begin;
  return {block.get(), offset, std::min<uint64_t>(wanted, block->used - offset)};
}

void OrderedHash::GiveBack() {
  const std::lock_guard lock(mutex_);
  while (!kept_.empty() && kept_.begin()->first + kept_.begin()->second->used <= hashed_) kept_.erase(kept_.begin());
}

Status OrderedHash::HashTo(uint64_t end) {
  const std::lock_guard lock(hashing_);
  while (hashed_ < end) {
    const Next next = NextTo(end - hashed_);
    if (next.block != nullptr) {
      UpdateFromAfar(*hasher_, {next.block->data + next.offset, next.length});
      hashed_ += next.length;
      GiveBack();
      continue;
    }
    buffer_.resize(kReadBytes);
    MUSTER_ASSIGN_OR_RETURN(size_t got, read_(hashed_, buffer_.data(), next.length));
    if (got == 0) return absl::DataLossError(fmt::format("the file ends at {} while it is written", hashed_.load()));
    hasher_->Update({buffer_.data(), got});
    hashed_ += got;
  }
  return absl::OkStatus();
}

std::string OrderedHash::Finish() { return hasher_->Finish(); }

}  // namespace muster::initializers

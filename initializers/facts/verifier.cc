// SPDX-License-Identifier: Apache-2.0
#include "initializers/facts/verifier.h"

#include <algorithm>
#include <utility>

#include "base/text.h"

namespace muster::initializers {
namespace {

std::string HashOf(HashKind kind, std::string_view bytes) {
  auto hasher = Hasher::Make(kind, bytes.size());
  hasher->Update(bytes);
  return hasher->Finish();
}

}  // namespace

Verifier::Verifier(uint64_t size, std::optional<Expectation> expected) : size_(size), expected_(std::move(expected)) {}

HashKind Verifier::kind() const { return expected_ ? expected_->kind : HashKind::kCrc32c; }

uint64_t Verifier::PieceSize() const {
  return expected_ && expected_->part_size != 0 ? std::min(expected_->part_size, size_) : size_;
}

bool Verifier::OnePiece(const Range& a, const Range& b) const {
  return a.offset / PieceSize() == b.offset / PieceSize();
}

void Verifier::Add(uint64_t offset, uint64_t length, std::string value) {
  if (length == 0) return;  // an empty file has no ranges
  added_ += length;
  if (offset >= size_ || length > size_ - offset) return;  // beyond the end: never complete
  auto next = std::upper_bound(ranges_.begin(), ranges_.end(), offset,
                               [](uint64_t at, const Range& range) { return at < range.offset; });
  next = ranges_.insert(next, {offset, length, std::move(value)});
  const auto at = static_cast<size_t>(next - ranges_.begin());
  JoinWithNext(at);
  if (at > 0) JoinWithNext(at - 1);
}

void Verifier::JoinWithNext(size_t at) {
  if (!AnyRange() || at + 1 == ranges_.size()) return;
  Range& range = ranges_[at];
  const Range& next = ranges_[at + 1];
  if (range.end() != next.offset || !OnePiece(range, next)) return;
  range.value = Combine(kind(), range.value, next.value, next.length);
  range.length += next.length;
  ranges_.erase(ranges_.begin() + static_cast<std::ptrdiff_t>(at) + 1);
}

bool Verifier::complete() const {
  const uint64_t pieces = size_ == 0 ? 0 : (size_ - 1) / PieceSize() + 1;
  return added_ == size_ && ranges_.size() == pieces;
}

std::string Verifier::Value() const {
  const bool composite = expected_ && expected_->part_size != 0;
  if (!composite) return size_ == 0 ? HashOf(kind(), "") : ranges_.empty() ? "" : ranges_.front().value;
  if (size_ == 0) return HashOf(kind(), HashOf(kind(), ""));
  std::string values;
  for (const Range& range : ranges_) values += range.value;
  return HashOf(kind(), values);
}

std::optional<std::string> Verifier::Mismatch() const {
  if (!complete()) return fmt::format("{} bytes have been hashed where the file has {}", added_, size_);
  if (!expected_) return std::nullopt;
  const Expectation got = {expected_->kind, Value(), expected_->part_size};
  if (got == *expected_) return std::nullopt;
  return fmt::format("the content is wrong: expected {}, got {}", Describe(*expected_), Describe(got));
}

}  // namespace muster::initializers

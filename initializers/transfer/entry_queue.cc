// SPDX-License-Identifier: Apache-2.0
#include "initializers/transfer/entry_queue.h"

#include <cstring>
#include <string_view>
#include <utility>

namespace muster::initializers {
namespace {

constexpr size_t kPieceBytes = size_t{64} << 10;  // the last entry of a piece may exceed it

enum Flag : uint8_t { kKnown = 1, kDoubted = 2, kRanges = 4, kExpected = 8, kContent = 16, kPathIsEndOfKey = 32 };

template <typename Number>
void Put(Number number, std::string* to) {
  to->append(reinterpret_cast<const char*>(&number), sizeof number);
}

void PutText(std::string_view text, std::string* to) {
  Put(static_cast<uint32_t>(text.size()), to);
  *to += text;
}

class Reader {
 public:
  Reader(std::string_view from, size_t at) : from_(from), at_(at) {}

  size_t at() const { return at_; }
  template <typename Number>
  Number Take() {
    Number number;
    std::memcpy(&number, from_.data() + at_, sizeof number);
    at_ += sizeof number;
    return number;
  }
  std::string TakeText() {
    const auto size = Take<uint32_t>();
    at_ += size;
    return std::string(from_.substr(at_ - size, size));
  }

 private:
  const std::string_view from_;
  size_t at_;
};

}  // namespace

// The size comes first: FrontSize reads it.
void EntryQueue::Push(const Entry& entry) {
  if (pieces_.empty() || pieces_.back().size() >= kPieceBytes) {
    if (!pieces_.empty()) pieces_.back().shrink_to_fit();
    pieces_.emplace_back();
  }
  std::string& to = pieces_.back();
  const bool end = entry.key.ends_with(entry.path);
  Put(entry.size, &to);
  Put(static_cast<uint8_t>((entry.known ? kKnown : 0) | (entry.doubted ? kDoubted : 0) | (entry.ranges ? kRanges : 0) |
                           (entry.expected ? kExpected : 0) | (entry.content ? kContent : 0) |
                           (end ? kPathIsEndOfKey : 0)),
      &to);
  PutText(entry.key, &to);
  end ? Put(static_cast<uint32_t>(entry.path.size()), &to) : PutText(entry.path, &to);
  PutText(entry.version, &to);
  if (entry.expected) {
    Put(entry.expected->kind, &to);
    PutText(entry.expected->value, &to);
    Put(entry.expected->part_size, &to);
  }
  if (entry.content) PutText(*entry.content, &to);
}

uint64_t EntryQueue::FrontSize() const { return Reader(pieces_.front(), read_).Take<uint64_t>(); }

Entry EntryQueue::Pop() {
  Reader from(pieces_.front(), read_);
  Entry entry;
  entry.size = from.Take<uint64_t>();
  const auto flags = from.Take<uint8_t>();
  entry.known = (flags & kKnown) != 0;
  entry.doubted = (flags & kDoubted) != 0;
  entry.ranges = (flags & kRanges) != 0;
  entry.key = from.TakeText();
  if ((flags & kPathIsEndOfKey) != 0) {
    entry.path = entry.key.substr(entry.key.size() - from.Take<uint32_t>());
  } else {
    entry.path = from.TakeText();
  }
  entry.version = from.TakeText();
  if ((flags & kExpected) != 0) {
    entry.expected.emplace();
    entry.expected->kind = from.Take<HashKind>();
    entry.expected->value = from.TakeText();
    entry.expected->part_size = from.Take<uint64_t>();
  }
  if ((flags & kContent) != 0) entry.content = from.TakeText();
  read_ = from.at();
  if (read_ == pieces_.front().size()) {
    pieces_.pop_front();
    read_ = 0;
  }
  return entry;
}

void EntryQueue::Clear() {
  pieces_.clear();
  read_ = 0;
}

}  // namespace muster::initializers

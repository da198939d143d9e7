// SPDX-License-Identifier: Apache-2.0
// Takes the fields off the front of a message in protobuf. Pure; untrusted input. No memory is taken.
#pragma once

#include <algorithm>
#include <cstdint>
#include <string_view>

namespace muster::controller {

enum class WireType : uint32_t { kVarint = 0, kFixed64 = 1, kBytes = 2, kFixed32 = 5 };

// A field of a message as it is on the wire.
struct WireField {
  uint32_t number = 0;
  WireType type = WireType::kVarint;
  uint64_t value = 0;      // of kVarint
  std::string_view bytes;  // of the other types
  bool whole = true;       // false: `bytes` is a beginning
};

class WireReader {
 public:
  // `whole`: false: the message may end anywhere.
  explicit WireReader(std::string_view message, bool whole = true) : rest_(message), whole_(whole) {}

  // False: there is no further field.
  bool Next(WireField* field) {
    if (rest_.empty()) return false;
    uint64_t tag = 0;
    if (!Varint(&tag)) return Stop();
    field->number = static_cast<uint32_t>(tag >> 3);
    field->type = static_cast<WireType>(tag & 7);
    field->whole = true;
    switch (tag & 7) {
      case 0:
        return Varint(&field->value) || Stop();
      case 1:
        return Take(8, &field->bytes) || Stop();
      case 2:
        return (Varint(&field->value) && TakeBytes(field)) || Stop();
      case 5:
        return Take(4, &field->bytes) || Stop();
    }
    return Stop();  // a group: nobody sends one
  }
  // False: a field was malformed, or a whole message ended inside one.
  bool ok() const { return !whole_ || !stopped_; }

 private:
  static constexpr int kLongestVarint = 10;  // bytes

  bool Stop() {
    stopped_ = true;
    rest_ = {};
    return false;
  }
  bool Varint(uint64_t* value) {
    *value = 0;
    for (int at = 0; at < kLongestVarint && !rest_.empty(); ++at) {
      const auto byte = static_cast<uint8_t>(rest_.front());
      rest_.remove_prefix(1);
      *value |= static_cast<uint64_t>(byte & 0x7f) << (7 * at);
      if (byte < 0x80) return true;
    }
    return false;
  }
  bool Take(uint64_t size, std::string_view* bytes) {
    if (size > rest_.size()) return false;
    *bytes = rest_.substr(0, size);
    rest_.remove_prefix(size);
    return true;
  }
  bool TakeBytes(WireField* field) {
    field->whole = field->value <= rest_.size();
    return Take(whole_ ? field->value : std::min<uint64_t>(field->value, rest_.size()), &field->bytes);
  }

  std::string_view rest_;
  const bool whole_;
  bool stopped_ = false;
};

}  // namespace muster::controller

// SPDX-License-Identifier: Apache-2.0
#include "initializers/archives/zip_window.h"

#include <algorithm>
#include <optional>

#include "initializers/archives/decompress.h"

namespace muster::initializers {
namespace {

// Takes little-endian numbers from the front of the data; past its end, cut() is true.
class Front {
 public:
  explicit Front(std::string_view data) : data_(data) {}

  bool cut() const { return cut_; }
  uint64_t Take(size_t bytes) {
    uint64_t value = 0;
    for (size_t at = 0; at < bytes; ++at) value |= TakeByte() << (8 * at);
    return value;
  }
  uint64_t TakeVarint() {  // Source: the .xz file format, section 1.2
    constexpr int kLongest = 63;
    uint64_t value = 0;
    for (int shift = 0; shift < kLongest; shift += 7) {
      const uint64_t byte = TakeByte();
      value |= (byte & 0x7f) << shift;
      if ((byte & 0x80) == 0) return value;
    }
    cut_ = true;
    return 0;
  }
  void Skip(uint64_t bytes) {
    cut_ = cut_ || bytes > data_.size();
    data_.remove_prefix(std::min<uint64_t>(bytes, data_.size()));
  }

 private:
  uint64_t TakeByte() {
    const uint64_t byte = data_.empty() ? 0 : static_cast<unsigned char>(data_.front());
    Skip(1);
    return byte;
  }
  std::string_view data_;
  bool cut_ = false;
};

// Version, length of the properties, then the properties: lc, lp and pb in a byte, the dictionary size in four.
uint64_t OfLzma(std::string_view data) {
  Front front(data);
  front.Skip(5);
  const uint64_t dictionary = front.Take(4);
  return front.cut() ? 0 : dictionary;
}

// The dictionary size of the last filter, LZMA2; the filters before it need only a few bytes.
uint64_t OfXz(std::string_view data) {
  constexpr size_t kStreamHeader = 12;
  constexpr uint64_t kLzma2 = 0x21, kLargest = 40;
  Front front(data);
  front.Skip(kStreamHeader + 1);
  const uint64_t flags = front.Take(1);
  for (uint64_t length : {0x40, 0x80}) {  // compressed and uncompressed size, if present
    if ((flags & length) != 0) front.TakeVarint();
  }
  for (uint64_t filter = 0; filter <= (flags & 3) && !front.cut(); ++filter) {
    const uint64_t id = front.TakeVarint(), properties = front.TakeVarint();
    if (id != kLzma2) {
      front.Skip(properties);
      continue;
    }
    const uint64_t bits = front.Take(1);
    if (front.cut() || bits > kLargest) return 0;
    return bits == kLargest ? UINT32_MAX : (2 | (bits & 1)) << (bits / 2 + 11);
  }
  return 0;
}

// The parameters: the order in four bits, then the memory in MiB minus one in eight.
uint64_t OfPpmd(std::string_view data) {
  Front front(data);
  const uint64_t parameters = front.Take(2);
  return front.cut() ? 0 : ((parameters >> 4 & 0xff) + 1) << 20;
}

}  // namespace

uint64_t WindowOfMember(std::string_view method, std::string_view data, uint64_t size) {
  if (method == "ppmd-8") return OfPpmd(data);  // a model, which may be larger than the member
  // Of the other windows only as much is used as the member has bytes.
  if (method == "lzma") return std::min(OfLzma(data), size);
  if (method == "xz") return std::min(OfXz(data), size);
  if (method == "zstd") return std::min(WindowOfFrame(data), size);
  return 0;
}

}  // namespace muster::initializers

// A file in order, out of gzip or zstd where its first bytes say so, else as it is. What is given out at a time is
// 256 KiB at most; zstd's window is its writer's choice, and the reader's memory: WindowLimits bound it.
//
// Checksums are checked, and a file that is cut short is an error; libarchive's own readers leave gzip's checksum out,
// and stop before the end. Members of gzip and frames of zstd may follow each other (pigz, bgzip, zstd -T0).
// Sources: RFC 1952 through zlib, RFC 8878 through libzstd.
#pragma once

#include <cstdint>
#include <memory>
#include <mutex>
#include <optional>
#include <string_view>

#include "base/status.h"

namespace muster::initializers {

// Shared by those that unpack side by side; outlives them.
struct WindowLimits {
  uint64_t most = uint64_t{128} << 20;    // bytes of one window; a wider one is refused
  uint64_t beside = uint64_t{128} << 20;  // with a wider one than that only one of them is busy at a time
  uint64_t of_zip = uint64_t{2} << 20;    // the same of a zip's member: nothing tells beforehand that it has one
  std::mutex wide;
};

// By the memory that this process may use (none: no limit is known): one window has what it leaves beside everything
// else, but 8 MiB, which zstd's levels up to 19 want, always; and all others of `readers` together as much again.
void BoundWindows(std::optional<int64_t> memory, int readers, WindowLimits* limits);

// Before a window of `bytes` is allocated. One that is wider than `beside` waits for the others that are, and holds
// `alone` from then on. ResourceExhausted: it is wider than the most; `whose`: "zstd: its window".
Status TakeWindow(uint64_t bytes, std::string_view whose, uint64_t beside, WindowLimits& limits,
                  std::unique_lock<std::mutex>* alone);

// Bytes of the window of the zstd frame that begins with `header`; 0: it is none, a skippable one, or cut short.
uint64_t WindowOfFrame(std::string_view header);
inline constexpr size_t kFrameHeader = 18;  // bytes at most

class Decompressor {
 public:
  // `file` is open, and outlives it, as `windows` does.
  static StatusOr<std::unique_ptr<Decompressor>> Make(int file, WindowLimits& windows);
  virtual ~Decompressor() = default;
  // Valid until the next call; empty: it has ended. DataLoss: it is broken or cut short. ResourceExhausted: its window
  // is too wide.
  virtual StatusOr<std::string_view> Next() = 0;
};

}  // namespace muster::initializers

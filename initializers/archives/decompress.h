// SPDX-License-Identifier: Apache-2.0
// Reads a file in order. If its first bytes are those of gzip or zstd, it is decompressed. A piece has at most 256 KiB.
// The writer of zstd data chooses the window size, which the reader needs as memory: WindowLimits bound it.
//
// Checksums are checked, and a file that is cut short is an error: libarchive's own readers ignore gzip's checksum and
// stop before the end. Several gzip members or zstd frames may follow each other (pigz, bgzip, zstd -T0). Sources: RFC
// 1952 through zlib, RFC 8878 through libzstd.
#pragma once

#include <cstdint>
#include <memory>
#include <mutex>
#include <optional>
#include <string_view>

#include "base/status.h"

namespace muster::initializers {

// Shared by all threads that unpack; outlives them.
struct WindowLimits {
  uint64_t most = uint64_t{128} << 20;    // bytes of one window; a larger one is refused
  uint64_t beside = uint64_t{128} << 20;  // of windows larger than this, only one is in use at a time
  uint64_t of_zip = uint64_t{2} << 20;    // the same for members of a zip: its name does not tell that they need one
  std::mutex wide;
};

// Sets the limits from the memory that this process may use (nullopt: no limit is known). One window may take what the
// rest of the run leaves, but always 8 MiB (zstd levels up to 19); all others of the `readers` together as much again.
void BoundWindows(std::optional<int64_t> memory, int readers, WindowLimits* limits);

// Call it before a window of `bytes` is allocated. If it is larger than `beside`, waits for the others that are, and
// `alone` holds the lock from then on. ResourceExhausted: it is larger than `limits.most`. `whose`: for the message.
Status TakeWindow(uint64_t bytes, std::string_view whose, uint64_t beside, WindowLimits& limits,
                  std::unique_lock<std::mutex>* alone);

// Bytes of the window of the zstd frame that begins with `header`. 0: no frame, a skippable one, or cut short.
uint64_t WindowOfFrame(std::string_view header);
inline constexpr size_t kFrameHeader = 18;  // bytes at most

class Decompressor {
 public:
  // `file` is an open descriptor. `file` and `windows` outlive the Decompressor.
  static StatusOr<std::unique_ptr<Decompressor>> Make(int file, WindowLimits& windows);
  virtual ~Decompressor() = default;
  // The next piece, valid until the next call; empty: the file has ended. DataLoss: the file is damaged or cut short.
  // ResourceExhausted: its window is too large.
  virtual StatusOr<std::string_view> Next() = 0;
};

}  // namespace muster::initializers

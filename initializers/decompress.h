// A file in order, out of gzip or zstd where its first bytes say so, else as it is. In fixed memory: what is given out
// at a time is 256 KiB at most, and zstd's window is the writer's choice (8 MiB by default, 128 MiB at most).
//
// Checksums are checked, and a file that is cut short is an error; libarchive's own readers leave gzip's checksum out,
// and stop before the end. Members of gzip and frames of zstd may follow each other (pigz, bgzip, zstd -T0).
// Sources: RFC 1952 through zlib, RFC 8878 through libzstd.
#pragma once

#include <memory>
#include <string_view>

#include "base/status.h"

namespace muster::initializers {

class Decompressor {
 public:
  // `file` is open, and outlives it.
  static StatusOr<std::unique_ptr<Decompressor>> Make(int file);
  virtual ~Decompressor() = default;
  // Valid until the next call; empty: it has ended. DataLoss: it is broken or cut short.
  virtual StatusOr<std::string_view> Next() = 0;
};

}  // namespace muster::initializers

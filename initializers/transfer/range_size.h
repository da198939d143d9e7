// SPDX-License-Identifier: Apache-2.0
// Decides how many bytes of a large file one request asks for. Pure.
//
// A request costs its latency, whatever its size. Far from the store ranges are longer, so that latency is a small part
// of the time. On a slow link they are shorter, so that the last requests end together. A request that is cut off
// continues from its last byte (fetch.h), so a longer range loses nothing.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "base/clock.h"
#include "initializers/facts/provider.h"
#include "initializers/target/staging_lines.h"

namespace muster::initializers {

struct RangeLimits {
  uint64_t least = 4 << 20;  // bytes; multiples of kBlockBytes
  uint64_t usual = 16 << 20;
  uint64_t most = 128 << 20;
};

class RangeSize {
 public:
  explicit RangeSize(RangeLimits limits) : limits_(limits) {}

  // Reports a request that brought `bytes`: the first byte after `waited`, the rest within `took` from then on.
  void Fetched(uint64_t bytes, Duration waited, Duration took);

  // Size in bytes of the next range of a file. `left` bytes of the file are not requested yet, and `requests` run at a
  // time: the end of the file is shared among them.
  uint64_t Next(uint64_t left, int requests) const;
  // The same for a file that is hashed in order. Near the store, and while that is unknown, the least size: bytes that
  // come early can wait in memory. Else at most the usual size: many requests would cost more than that saves.
  uint64_t NextInOrder() const;
  // True if the store answers so fast that few parallel requests are enough. False until the first request has ended.
  bool near() const;

 private:
  uint64_t Bytes(double seconds) const;  // that one request brings in `seconds`

  const RangeLimits limits_;
  double waited_ = 0;   // s, smoothed
  double soonest_ = 0;  // s; the recent minimum: a longer wait is a queue, at the server or here
  double rate_ = 0;     // bytes/s of one request, smoothed; 0: not known yet
};

// In the next two, `noted` is sorted by offset, as ReadRangeLines returns it.

// The range that begins at `next`, of at most `most` bytes, or one `unit`. Ends at a multiple of `unit` or the file's
// end, and before a range behind a gap that an earlier start has noted, so that it is not fetched again.
ByteRange NextRange(uint64_t next, uint64_t size, uint64_t most, uint64_t unit, const std::vector<StagedRange>& noted);

// The ranges of `noted` that fill `range` of a file of `size` bytes, from its beginning without a gap. Each has at most
// `most` bytes and ends at a multiple of `unit` or the file's end: direct writes begin only at such multiples.
std::span<const StagedRange> NotedIn(ByteRange range, uint64_t size, uint64_t most, uint64_t unit,
                                     const std::vector<StagedRange>& noted);

}  // namespace muster::initializers

// How much of a large file one request asks for. Pure.
//
// A request costs its latency, whatever it brings: far from the store a range is longer, so that the wait is a small
// part of it; on a slow link it is shorter, so that the last ones end together. What is cut goes on from its last byte
// (fetch.h), so a longer range loses nothing.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "base/clock.h"
#include "initializers/provider.h"
#include "initializers/staging_lines.h"

namespace muster::initializers {

struct RangeLimits {
  uint64_t least = 4 << 20;  // bytes; multiples of kBlockBytes
  uint64_t usual = 16 << 20;
  uint64_t most = 128 << 20;
};

class RangeSize {
 public:
  explicit RangeSize(RangeLimits limits) : limits_(limits) {}

  // One request has brought `bytes`, the first of them after `waited`, the others within `took` from then on.
  void Fetched(uint64_t bytes, Duration waited, Duration took);

  // Bytes of the next range of a file of which `left` bytes are not asked for, where `requests` go on at a time: the
  // end is shared among them.
  uint64_t Next(uint64_t left, int requests) const;
  // The same of a file that is hashed in order: the least nearby, and before that is known, so that what comes before
  // its turn can wait in memory; at most the usual elsewhere, where many requests would cost more than that saves.
  uint64_t NextInOrder() const;
  // The store answers so soon that few requests at a time are enough. False until one has told.
  bool near() const;

 private:
  uint64_t Bytes(double seconds) const;  // that one request brings in it

  const RangeLimits limits_;
  double waited_ = 0;   // s, smoothed
  double soonest_ = 0;  // s; the least of late: what waits longer waits for others, at the server or here
  double rate_ = 0;     // bytes/s of one request, smoothed; 0: not known yet
};

// `noted` is by offset, as ReadRangeLines gives it.

// The range that begins at `next`: of at most `most` bytes, ended before the next one that an earlier start has noted
// behind a gap, so that what is there is not fetched again. Ends are multiples of `unit`, or the file's.
ByteRange NextRange(uint64_t next, uint64_t size, uint64_t most, uint64_t unit, const std::vector<StagedRange>& noted);

// Those of `noted` that fill `range`, of a file of `size` bytes, from its beginning without a gap: of `most` bytes
// each, and ending at multiples of `unit`, so that what is behind them can be written where that is all a write may
// begin at.
std::span<const StagedRange> NotedIn(ByteRange range, uint64_t size, uint64_t most, uint64_t unit,
                                     const std::vector<StagedRange>& noted);

}  // namespace muster::initializers

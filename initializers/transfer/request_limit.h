// SPDX-License-Identifier: Apache-2.0
// Decides how many requests run at a time. The number grows while more requests bring more bytes, and falls when a
// server refuses for load. Pure; one instance for a whole run. It does not measure and does not wait.
//
// A request holds a block of memory while it fills it, and may want the next block before the first is full. With as
// many requests as blocks, all could wait for each other for ever.
#pragma once

#include <cstddef>
#include <cstdint>

#include "base/clock.h"

namespace muster::initializers {

struct RequestLimitOptions {
  // Each request backs off by itself after a refusal, and keeps its place meanwhile. With only one request, a server
  // that refuses three of ten would hold up everything. rclone uses 4 in all.
  int least = 4;
  int first = 8;
  int most = 32;
  Duration window = std::chrono::milliseconds(400);  // length of one measurement
};

// Limits the numbers to fewer requests than `blocks` (at least 2).
RequestLimitOptions Within(RequestLimitOptions limits, size_t blocks);

class RequestLimit {
 public:
  explicit RequestLimit(RequestLimitOptions limits) : limits_(limits), target_(limits.first) {}

  int target() const { return target_; }

  // `done`: requests that succeeded since the last call; `bytes`: what they brought. `busy`: as many as allowed ran, so
  // that more might have brought more. Each request counts kWorth bytes extra: a small one costs only latency.
  void Progressed(uint64_t bytes, int done, bool busy, TimePoint now);
  // Call it for 429 and 503: halves the number, at most once in a window.
  void Throttled(TimePoint now);

 private:
  static constexpr uint64_t kWorth = 64 << 10;

  void Judge(double rate);

  const RequestLimitOptions limits_;
  int target_;
  double best_ = 0;  // best rate of a window so far, at best_target_
  int best_target_ = 0;
  int quiet_ = 0;  // windows left before more requests are tried again
  uint64_t worth_ = 0;
  bool idle_ = false;  // in this window fewer requests ran than were allowed
  TimePoint began_{};
  TimePoint throttled_{};
};

}  // namespace muster::initializers

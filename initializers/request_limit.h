// How many requests at a time: climbs while more of them bring more, goes back when a server says that it is too much.
// Pure; one instance for a whole run. Nothing here measures or waits.
//
// A request holds a block of memory while it fills it, and may want the next one before that is full: with as many
// requests as blocks, all could wait for each other for ever.
#pragma once

#include <cstddef>
#include <cstdint>

#include "base/clock.h"

namespace muster::initializers {

struct RequestLimitOptions {
  // Each waits longer after each refusal by itself, and holds its place meanwhile: with one alone, a server that
  // refuses three of ten would make all that is left stand behind it. As many as rclone has at all.
  int least = 4;
  int first = 8;
  int most = 32;
  Duration window = std::chrono::milliseconds(400);  // of one measurement
};

// Fewer requests than `blocks` (at least 2).
RequestLimitOptions Within(RequestLimitOptions limits, size_t blocks);

class RequestLimit {
 public:
  explicit RequestLimit(RequestLimitOptions limits) : limits_(limits), target_(limits.first) {}

  int target() const { return target_; }

  // `done`: requests ended well since the last call, `bytes` with them; `busy`: all that were allowed were under way,
  // so that more of them might have brought more. A small request counts as kWorth bytes: its cost is its latency.
  void Progressed(uint64_t bytes, int done, bool busy, TimePoint now);
  // 429, 503: half as many, once in a window.
  void Throttled(TimePoint now);

 private:
  static constexpr uint64_t kWorth = 64 << 10;

  void Judge(double rate);

  const RequestLimitOptions limits_;
  int target_;
  double best_ = 0;  // rate of the best window so far at best_target_
  int best_target_ = 0;
  int quiet_ = 0;  // windows left before trying more again
  uint64_t worth_ = 0;
  bool idle_ = false;  // in this window not all were under way
  TimePoint began_{};
  TimePoint throttled_{};
};

}  // namespace muster::initializers

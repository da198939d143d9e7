// SPDX-License-Identifier: Apache-2.0
// Time. Deadlines, pauses and ages use the monotonic clock, which cannot be set. The wall clock serves for two things:
// moments that other machines read (a Lease, a condition, the expiration of a token), and records for people.
#pragma once

#include <chrono>
#include <optional>

namespace muster {

using Duration = std::chrono::nanoseconds;
using MonotonicClock = std::chrono::steady_clock;
using TimePoint = MonotonicClock::time_point;

// The earlier of two optional moments; nullopt means "never".
inline std::optional<TimePoint> Earlier(std::optional<TimePoint> a, std::optional<TimePoint> b) {
  if (!a) return b;
  if (!b) return a;
  return *a < *b ? a : b;
}

// A moment of the wall clock. The clock can be set, so a later moment may have a smaller value.
using WallTime = std::chrono::sys_time<std::chrono::microseconds>;

// The caller reads the clock once for each event and passes it to decisions as `now`. So a test can give any time, and
// one decision uses one moment. tests/layout_test.py lists the files that may call this function.
inline WallTime WallNow() {
  return std::chrono::time_point_cast<std::chrono::microseconds>(std::chrono::system_clock::now());
}

// Time since the Unix epoch, for records and logs.
inline int64_t UnixMillis() {
  return std::chrono::duration_cast<std::chrono::milliseconds>(WallNow().time_since_epoch()).count();
}
inline int64_t UnixSeconds() { return UnixMillis() / 1000; }

}  // namespace muster

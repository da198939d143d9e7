// Time. Deadlines, pauses and ages go by the monotonic clock: nobody can set it. The wall clock serves for two things:
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

// A moment of the wall clock. Somebody may set that clock: two moments may come in the wrong order.
using WallTime = std::chrono::sys_time<std::chrono::microseconds>;

// Read at the edge, once for each event, and passed to decisions as `now`: so a test gives any time it likes, and all
// of one decision goes by one moment. tests/layout_test.py lists the files that may call it.
inline WallTime WallNow() {
  return std::chrono::time_point_cast<std::chrono::microseconds>(std::chrono::system_clock::now());
}

// Since the Unix epoch, for records and logs.
inline int64_t UnixMillis() {
  return std::chrono::duration_cast<std::chrono::milliseconds>(WallNow().time_since_epoch()).count();
}
inline int64_t UnixSeconds() { return UnixMillis() / 1000; }

}  // namespace muster

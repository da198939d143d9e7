// Time. Only the monotonic clock decides anything; wall-clock time is for people's eyes.
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

// Milliseconds since the Unix epoch, for records and logs only.
inline int64_t UnixMillis() {
  return std::chrono::duration_cast<std::chrono::milliseconds>(std::chrono::system_clock::now().time_since_epoch())
      .count();
}

}  // namespace muster

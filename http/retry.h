// When to ask again: pacing of requests that failed, as a pure decision. Nothing here waits.
//
// The caller says which answers are worth another request. Retry-After: RFC 9110 10.2.3 (seconds or a date); RateLimit
// "r=..;t=.." (IETF draft) as the Hugging Face hub sends it.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "base/clock.h"

namespace muster::http {

inline constexpr uint64_t kSlowest = 32 << 10;  // bytes/s: what comes slower is no progress

struct RetryRules {
  Duration first = std::chrono::milliseconds(200);  // pause after the first failure; doubles
  Duration longest = std::chrono::seconds(20);      // of the doubling; what a server asks for may be longer
  // The same where others beside it succeed: a server that refuses some is no outage. The longer the last of them is
  // ago, the more it may be one: a pause is half as long as that at most, but never kept below this.
  Duration longest_beside = std::chrono::seconds(2);
  Duration longest_asked =
      std::chrono::seconds(330);  // a server's own wish is heard up to this (the hub's window is 300 s)
  // Without any progress; the failure after that stands. A pause is cut so that it ends then at the latest, but one
  // that a server asked for is not: so all ends within patience + longest_asked and the time the requests take.
  Duration patience = std::chrono::seconds(300);
  uint64_t slowest = kSlowest;  // a server that gives some bytes each time, and never enough, would be asked for ever
};

// One thing that is asked for until it is there: a page of a list, a range of an object.
struct RetryState {
  int failures = 0;    // in a row: since it went on, as DecideRetry finds it
  TimePoint since;     // of the first of them
  uint64_t bytes = 0;  // that came since then
  bool operator==(const RetryState&) const = default;
};

struct RetryFailure {
  bool transient = false;                   // trying again may help
  std::optional<Duration> asked;            // Retry-After or RateLimit
  std::string what;                         // for people
  std::optional<Duration> since_success{};  // of another request to that server; none: there was none
};

struct RetryDecision {
  std::optional<Duration> pause;  // ask again after it; none: give up
  std::string reason;             // one sentence: "503 SlowDown, trying again in 1.6 s (2 failures)"
};

// `jitter` in [0, 1): the pause is spread over its upper half, so that a crowd does not come back at once; what a
// server asks for is waited for in full, and the same spread comes on top.
RetryDecision DecideRetry(const RetryRules& rules, RetryState* state, const RetryFailure& failure, TimePoint now,
                          double jitter);
// Bytes came. Where they are as many as `slowest` makes of the time since the first failure, the next is a first one.
void NoteProgress(RetryState* state, uint64_t bytes);

// Seconds, or a date (any of RFC 9110's three forms) relative to `unix_now` (seconds); nothing for what is neither, or
// is in the past. What is beyond a year is a year.
std::optional<Duration> ParseRetryAfter(std::string_view value, int64_t unix_now);
// `"api";r=0;t=37`: t + 1 s when r is 0 (the hub's client does so), nothing otherwise. Of several, the longest.
std::optional<Duration> ParseRateLimit(std::string_view value);

}  // namespace muster::http

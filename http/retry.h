// SPDX-License-Identifier: Apache-2.0
// Decides whether and when to retry a failed request. Pure: nothing here waits.
//
// The caller says which failures are transient. Sources: RFC 9110 10.2.3 (Retry-After: seconds or a date); the IETF
// draft of RateLimit, "r=..;t=..", as the Hugging Face hub sends it.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "base/clock.h"

namespace muster::http {

inline constexpr uint64_t kSlowest = 32 << 10;  // bytes/s; a slower transfer makes no progress

struct RetryRules {
  Duration first = std::chrono::milliseconds(200);  // pause after the first failure; doubles with each failure
  Duration longest = std::chrono::seconds(20);      // limit of the doubling; a server may ask for a longer pause
  // The limit of the doubling while parallel requests to the same server succeed, since a server that refuses only some
  // requests has no outage. The limit grows to half of the time since the last success, up to `longest`.
  Duration longest_beside = std::chrono::seconds(2);
  Duration longest_asked =
      std::chrono::seconds(330);  // longest pause that a server may ask for (the hub's window is 300 s)
  // How long to retry without progress; the next failure is final. A pause is cut to end then, unless a server asked
  // for it. So all ends within patience + longest_asked, plus the time that the requests take.
  Duration patience = std::chrono::seconds(300);
  uint64_t slowest = kSlowest;  // bytes/s; at 0, a server that sends a few bytes each time would be asked for ever
};

// State of one item that is requested until it is complete: a page of a list, a range of an object.
struct RetryState {
  int failures = 0;    // failures since the last progress, as DecideRetry counts them
  TimePoint since;     // time of the first of these failures
  uint64_t bytes = 0;  // bytes received since then
  bool operator==(const RetryState&) const = default;
};

struct RetryFailure {
  bool transient = false;                   // a retry may help
  std::optional<Duration> asked;            // from Retry-After or RateLimit
  std::string what;                         // for people
  std::optional<Duration> since_success{};  // since another request to that server succeeded; nullopt: none did
};

struct RetryDecision {
  std::optional<Duration> pause;  // retry after this pause; nullopt: give up
  std::string reason;             // one sentence: "503 SlowDown, trying again in 1.6 s (2 failures)"
};

// `jitter` is in [0, 1). It spreads the pause over its upper half, so that many clients do not retry at once. A pause
// that a server asks for is kept in full, and the same spread is added to it.
RetryDecision DecideRetry(const RetryRules& rules, RetryState* state, const RetryFailure& failure, TimePoint now,
                          double jitter);
// Call it when bytes come. At a rate of `slowest` since the first failure, they make the next failure a first one.
void NoteProgress(RetryState* state, uint64_t bytes);

// Parses seconds, or a date (any of RFC 9110's three forms) relative to `unix_now` (seconds). nullopt: neither, or a
// date in the past. More than a year counts as a year.
std::optional<Duration> ParseRetryAfter(std::string_view value, int64_t unix_now);
// `"api";r=0;t=37` gives t + 1 s if r is 0, as in the hub's client; otherwise nullopt. Of several items, the longest.
std::optional<Duration> ParseRateLimit(std::string_view value);

}  // namespace muster::http

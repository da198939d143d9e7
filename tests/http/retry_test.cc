// SPDX-License-Identifier: Apache-2.0
// Tests of the retry decisions and of the headers that servers send for them.
#include "http/retry.h"

#include <gtest/gtest.h>

#include <vector>

#include "base/text.h"
#include "initializers/facts/provider.h"

namespace muster::http {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;

constexpr TimePoint At(double after) {
  return TimePoint() + seconds(1'000) + std::chrono::duration_cast<Duration>(std::chrono::duration<double>(after));
}

// Simulates one requested item: failures at given times, with decisions as texts.
struct Asking {
  RetryRules rules;
  RetryState state;
  double jitter = 0;

  RetryDecision Fails(double at, std::optional<Duration> asked = std::nullopt, std::string what = "503 SlowDown") {
    return DecideRetry(rules, &state, {true, asked, std::move(what)}, At(at), jitter);
  }
};

std::optional<int64_t> Millis(std::optional<Duration> duration) {
  if (!duration) return std::nullopt;
  return std::chrono::duration_cast<milliseconds>(*duration).count();
}

TEST(Retry, PausesDoubleUpToTheLongest) {
  const struct {
    double jitter;
    std::vector<int64_t> pauses;  // milliseconds
  } rows[] = {
      {0.0, {100, 200, 400, 800, 1'600, 3'200, 6'400, 10'000, 10'000, 10'000}},
      {0.5, {150, 300, 600, 1'200, 2'400, 4'800, 9'600, 15'000, 15'000, 15'000}},
      {1.0, {200, 400, 800, 1'600, 3'200, 6'400, 12'800, 20'000, 20'000, 20'000}},
      {-1.0, {100, 200}},  // jitter is clamped to its range
      {7.0, {200, 400}},
  };
  for (const auto& row : rows) {
    Asking asking;
    asking.jitter = row.jitter;
    for (int64_t pause : row.pauses) EXPECT_EQ(Millis(asking.Fails(0).pause), pause) << row.jitter;
  }
}

// A pause is at most half of the time since another request succeeded, but this limit is never below 2 s.
TEST(Retry, BesideOthersThatSucceedItDoesNotWaitForAnOutageToEnd) {
  const struct {
    double since_success;
    std::vector<int64_t> pauses;  // milliseconds
  } rows[] = {
      {0.0, {200, 400, 800, 1'600, 2'000, 2'000, 2'000}},
      {3.9, {200, 400, 800, 1'600, 2'000, 2'000, 2'000}},
      {10.0, {200, 400, 800, 1'600, 3'200, 5'000, 5'000}},
      {60.0, {200, 400, 800, 1'600, 3'200, 6'400, 12'800, 20'000, 20'000}},
  };
  for (const auto& row : rows) {
    RetryState state;
    RetryFailure failure{true, std::nullopt, "503 SlowDown"};
    failure.since_success = At(row.since_success) - At(0);
    for (int64_t pause : row.pauses) {
      EXPECT_EQ(Millis(DecideRetry(RetryRules{}, &state, failure, At(0), 1).pause), pause) << row.since_success;
    }
  }
}

TEST(Retry, SaysWhatItDoes) {
  Asking asking;
  asking.jitter = 1;
  EXPECT_EQ(asking.Fails(0).reason, "503 SlowDown, trying again in 0.2 s (1 failure)");
  EXPECT_EQ(asking.Fails(0.3).reason, "503 SlowDown, trying again in 0.4 s (2 failures)");
  EXPECT_EQ(asking.Fails(1, seconds(37), "429 Too Many Requests").reason,
            "429 Too Many Requests, trying again in 37.4 s as the server asks (3 failures)");
  EXPECT_EQ(asking.Fails(300, std::nullopt, "no byte for 30 s").reason,
            "no byte for 30 s; giving up after 300 s without progress (4 failures)");
}

TEST(Retry, WhatStaysWrongIsNotAskedAgain) {
  Asking asking;
  const RetryFailure failure = {false, seconds(1), "403 AccessDenied"};
  const RetryDecision decision = DecideRetry(asking.rules, &asking.state, failure, At(0), 0);
  EXPECT_EQ(decision.pause, std::nullopt);
  EXPECT_EQ(decision.reason, "403 AccessDenied");
  EXPECT_EQ(asking.state, RetryState());
}

TEST(Retry, ProgressMakesTheNextFailureTheFirst) {
  const struct {
    uint64_t bytes;
    double at;
    bool first;
  } rows[] = {
      {0, 5, false}, {1, 5, false}, {5 * kSlowest - 1, 5, false}, {5 * kSlowest, 5, true}, {5 * kSlowest, 5.1, false},
      {1, 0, true},
  };
  for (const auto& row : rows) {
    Asking asking;
    for (int i = 0; i < 3; ++i) asking.Fails(0);
    NoteProgress(&asking.state, row.bytes);
    EXPECT_EQ(Millis(asking.Fails(row.at).pause), row.first ? 100 : 800) << row.bytes;
    EXPECT_EQ(asking.state.failures, row.first ? 1 : 4);
    EXPECT_EQ(asking.state.since, At(row.first ? row.at : 0));
    EXPECT_EQ(asking.state.bytes, row.first ? 0 : row.bytes);
  }
}

// A byte or some thousands with each answer are no progress; some megabytes before each cut are.
TEST(Retry, AServerThatNeverGivesEnoughIsNotAskedForEver) {
  for (uint64_t bytes : {uint64_t{1}, uint64_t{1000}, uint64_t{5} << 20}) {
    Asking asking;
    double now = 0;
    int attempts = 0;
    for (; attempts < 1000; ++attempts) {
      const auto pause = asking.Fails(now).pause;
      if (!pause) break;
      now += std::chrono::duration<double>(*pause).count();
      NoteProgress(&asking.state, bytes);
    }
    EXPECT_EQ(attempts == 1000, bytes > 1000) << bytes;
    EXPECT_LE(now, 310) << bytes;
  }
}

TEST(Retry, PatienceEnds) {
  Asking asking;
  asking.jitter = 1;
  EXPECT_TRUE(asking.Fails(0).pause);
  EXPECT_TRUE(asking.Fails(299.5).pause);
  EXPECT_TRUE(asking.Fails(299.999).pause);
  EXPECT_FALSE(asking.Fails(300).pause);
  EXPECT_FALSE(asking.Fails(10'000).pause);
}

TEST(Retry, ThePauseIsCutAtTheEndOfPatience) {
  Asking asking;
  for (int i = 0; i < 10; ++i) asking.Fails(0);
  EXPECT_EQ(Millis(asking.Fails(285).pause), 10'000);
  EXPECT_EQ(Millis(asking.Fails(295).pause), 5'000);  // the last attempt is at 300 s
  EXPECT_EQ(Millis(asking.Fails(299.9).pause), 100);
}

TEST(Retry, EndsWhateverTheServerDoes) {
  const struct {
    double jitter;
    std::optional<Duration> asked;
    double end;  // seconds, at the latest
  } rows[] = {
      {0, std::nullopt, 300},    {1, std::nullopt, 300}, {0, seconds(0), 300},
      {1, milliseconds(1), 310}, {0, seconds(10), 310},  {1, seconds(330), 300 + 330 + 10},
  };
  for (const auto& row : rows) {
    Asking asking;
    asking.jitter = row.jitter;
    double now = 0;
    int attempts = 0;
    for (std::optional<Duration> pause; (pause = asking.Fails(now, row.asked).pause); ++attempts) {
      ASSERT_LT(attempts, 10'000);
      now += std::chrono::duration<double>(*pause).count();
    }
    EXPECT_GE(now, 299.9);
    EXPECT_LE(now, row.end + 10.1) << row.jitter;
  }
}

TEST(Retry, AServersWishIsHeard) {
  const struct {
    Duration asked;
    double jitter;
    std::optional<int64_t> pause;  // milliseconds, after the third failure: own pause 400 to 800
  } rows[] = {
      {seconds(37), 0, 37'000},
      {seconds(37), 1, 37'400},  // never earlier than the server asks
      {seconds(0), 0, 400},      // nor earlier than the own pause
      {seconds(0), 1, 800},
      {milliseconds(500), 0, 500},
      {seconds(301), 0, 301'000},  // the hub's window, beyond our patience
      {seconds(330), 0, 330'000},
      {seconds(331), 0, std::nullopt},
      {seconds(86'400), 0, std::nullopt},
  };
  for (const auto& row : rows) {
    Asking asking;
    asking.jitter = row.jitter;
    asking.Fails(0);
    asking.Fails(1);
    EXPECT_EQ(Millis(asking.Fails(2, row.asked).pause), row.pause) << Millis(row.asked).value();
  }
  Asking asking;
  EXPECT_EQ(asking.Fails(0, seconds(3'600), "429 Too Many Requests").reason,
            "429 Too Many Requests; the server asks for a pause of 3600 s, and Muster waits 330 s at most");
}

TEST(Retry, RulesOfZeroGiveUpOrRetryAtOnce) {
  Asking asking;
  asking.rules = {Duration::zero(), Duration::zero(), Duration::zero(), Duration::zero(), Duration::zero()};
  EXPECT_FALSE(asking.Fails(0).pause);
  asking.rules.patience = seconds(1);
  asking.state = {};
  EXPECT_EQ(Millis(asking.Fails(0).pause), 0);
  EXPECT_EQ(Millis(asking.Fails(0, Duration::zero()).pause), 0);
}

TEST(Retry, ManyFailuresDoNotOverflow) {
  Asking asking;
  asking.rules.longest = std::chrono::hours(24 * 365);
  asking.rules.patience = std::chrono::hours(24 * 365 * 10);
  asking.state = {2'000'000'000, At(0), 0};
  EXPECT_EQ(asking.Fails(0).pause, asking.rules.longest / 2);
}

constexpr int64_t kNow = 1'795'309'323;  // Sun, 22 Nov 2026 01:02:03 GMT

TEST(RetryAfter, IsRead) {
  const struct {
    std::string_view value;
    std::optional<int64_t> pause;  // seconds
  } rows[] = {
      {"0", 0},
      {"120", 120},
      {" 7 ", 7},
      {"007", 7},
      {"31536000", 31'536'000},
      {"31536001", 31'536'000},
      {"99999999999999999999999", 31'536'000},
      // RFC 9110 5.6.7, all forms
      {"Sun, 22 Nov 2026 01:02:03 GMT", 0},
      {"Sun, 22 Nov 2026 01:02:10 GMT", 7},
      {"Sunday, 22-Nov-26 01:02:10 GMT", 7},
      {"Sun Nov 22 01:02:10 2026", 7},
      {"Tue Dec  1 01:02:03 2026", 9 * 86'400},
      {"Mon, 23 Nov 2026 00:00:00 GMT", 82'677},
      {"Mon, 28 Feb 2028 23:59:60 GMT", 31'536'000},
      {"Fri, 31 Dec 9999 23:59:59 GMT", 31'536'000},
      // the past
      {"Sun, 22 Nov 2026 01:02:02 GMT", std::nullopt},
      {"Sun, 06 Nov 1994 08:49:37 GMT", std::nullopt},
      {"Sunday, 06-Nov-94 08:49:37 GMT", std::nullopt},
      {"Sun Nov  6 08:49:37 1994", std::nullopt},
      {"Saturday, 22-Nov-77 00:00:00 GMT", std::nullopt},  // 1977
      {"Sunday, 22-Nov-76 00:00:00 GMT", 31'536'000},      // 2076
      // neither seconds nor a date
      {"", std::nullopt},
      {"-1", std::nullopt},
      {"+1", std::nullopt},
      {"1.5", std::nullopt},
      {"1s", std::nullopt},
      {"1 2", std::nullopt},
      {"soon", std::nullopt},
      {"Sun, 22 Nov 2026 01:02:10", std::nullopt},
      {"Sun, 22 Nov 2026 01:02:10 UTC", std::nullopt},
      {"Sun, 22 Nov 2026 01:02:10 GMT+1", std::nullopt},
      {"Sun, 22 nov 2026 01:02:10 GMT", std::nullopt},
      {"Sun, 2 Nov 2026 01:02:10 GMT", std::nullopt},
      {"Sun 22 Nov 2026 01:02:10 GMT", std::nullopt},
      {"So, 22 Nov 2026 01:02:10 GMT", std::nullopt},
      {"Sun, 31 Feb 2027 01:02:10 GMT", std::nullopt},
      {"Mon, 29 Feb 2027 01:02:10 GMT", std::nullopt},
      {"Sun, 00 Nov 2027 01:02:10 GMT", std::nullopt},
      {"Sun, 22 Nov 2027 24:00:00 GMT", std::nullopt},
      {"Sun, 22 Nov 2027 01:60:00 GMT", std::nullopt},
      {"Sun, 22 Nov 2027 01:00:61 GMT", std::nullopt},
      {"Sun, 22 Nov 2027 -1:00:00 GMT", std::nullopt},
      {"Sun, 22 Nov", std::nullopt},
      {"Sun Nov 22 01:02:10", std::nullopt},
      {"2026-11-22T01:02:10Z", std::nullopt},
  };
  for (const auto& row : rows) {
    const auto pause = ParseRetryAfter(row.value, kNow);
    EXPECT_EQ(pause, row.pause ? std::optional<Duration>(seconds(*row.pause)) : std::nullopt) << row.value;
  }
}

// A wrong clock, of this machine or of the server, does not change the pause.
TEST(RetryAfter, ADateIsByTheServersClock) {
  const ResponseHead dated{
      .status = 503,
      .headers = {{"date", "Sun, 22 Nov 2026 01:02:03 GMT"}, {"retry-after", "Sun, 22 Nov 2026 01:02:10 GMT"}}};
  const ResponseHead counted{.status = 503, .headers = {{"date", "nonsense"}, {"retry-after", "7"}}};
  for (const int64_t offset : {-7300, 0, 7300}) {
    EXPECT_EQ(AskedBy(dated, kNow + offset), seconds(7)) << offset;
    EXPECT_EQ(AskedBy(counted, kNow + offset), seconds(7)) << offset;
  }
  const ResponseHead dateless{.status = 503, .headers = {{"retry-after", "Sun, 22 Nov 2026 01:02:10 GMT"}}};
  EXPECT_EQ(AskedBy(dateless, kNow), ParseRetryAfter("Sun, 22 Nov 2026 01:02:10 GMT", kNow));
  EXPECT_EQ(AskedBy({.status = 503}, kNow), std::nullopt);
  const ResponseHead used_up{.status = 429, .headers = {{"ratelimit", R"("api";r=0;t=36)"}}};
  EXPECT_EQ(AskedBy(used_up, kNow), seconds(37));
  const ResponseHead both{.status = 429, .headers = {{"ratelimit", R"("api";r=0;t=36)"}, {"retry-after", "50"}}};
  EXPECT_EQ(AskedBy(both, kNow), seconds(50));
  const ResponseHead some_left{.status = 503, .headers = {{"ratelimit", R"("api";r=9;t=36)"}, {"retry-after", "7"}}};
  EXPECT_EQ(AskedBy(some_left, kNow), seconds(7));
}

TEST(RateLimit, IsRead) {
  const struct {
    std::string_view value;
    std::optional<int64_t> pause;  // seconds
  } rows[] = {
      {R"("api";r=0;t=37)", 38},
      {R"("resolvers"; r=0 ; t=300)", 301},
      {R"("api";t=5;r=0)", 6},
      {R"("api";r=0;t=0)", 1},
      {R"("api";r=0;t=37;x="r=9;t=1")", 38},
      {R"("a;r=0,\"t=5";r=0;t=6)", 7},
      {R"("api";r=4;t=37, "resolvers";r=0;t=12)", 13},
      {R"("api";r=0;t=37,"resolvers";r=0;t=12)", 38},
      {R"("api";r=0;t=99999999999999999999)", 31'536'001},
      {R"("api";r=1;t=37)", std::nullopt},
      {R"("api";r=0)", std::nullopt},
      {R"("api";t=37)", std::nullopt},
      {R"("api";r=;t=37)", std::nullopt},
      {R"("api";r=0;t=-1)", std::nullopt},
      {R"("api";r=0;t=1.5)", std::nullopt},
      {R"("api;r=0;t=37)", std::nullopt},
      {R"("fixed window";"api";q=500;w=300)", std::nullopt},
      {"r=0;t=3", 4},
      {"", std::nullopt},
      {",;,;\"\\", std::nullopt},
  };
  for (const auto& row : rows) {
    const auto pause = ParseRateLimit(row.value);
    EXPECT_EQ(pause, row.pause ? std::optional<Duration>(seconds(*row.pause)) : std::nullopt) << row.value;
  }
}

}  // namespace
}  // namespace muster::http

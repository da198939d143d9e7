// SPDX-License-Identifier: Apache-2.0
#include "http/retry.h"

#include <algorithm>
#include <chrono>
#include <vector>

#include "base/text.h"
#include "http/date.h"

namespace muster::http {
namespace {

using std::chrono::seconds;

constexpr int64_t kYear = int64_t{365} * 24 * 3600;  // seconds

double Seconds(Duration duration) { return std::chrono::duration<double>(duration).count(); }

Duration Longest(const RetryRules& rules, const RetryFailure& failure) {
  if (!failure.since_success) return rules.longest;
  return std::min(std::max(*failure.since_success / 2, rules.longest_beside), rules.longest);
}

bool WentOn(const RetryRules& rules, const RetryState& state, TimePoint now) {
  const double enough = static_cast<double>(rules.slowest) * Seconds(now - state.since);
  return state.bytes > 0 && static_cast<double>(state.bytes) >= enough;
}

Duration Doubled(Duration first, Duration longest, int failures) {
  Duration pause = first;
  for (int i = 1; i < failures && pause < longest; ++i) pause *= 2;
  return std::min(pause, longest);
}

// Digits only; nullopt for any other text. More than a year counts as a year.
std::optional<int64_t> ParseSeconds(std::string_view text) {
  if (text.empty() || text.find_first_not_of("0123456789") != std::string_view::npos) return std::nullopt;
  return std::min(ParseInt(text).value_or(kYear), kYear);
}

// Splits a structured field (RFC 9651) at separators outside of quoted strings.
std::vector<std::string_view> SplitOutsideQuotes(std::string_view text, char separator) {
  std::vector<std::string_view> parts;
  bool quoted = false;
  size_t start = 0;
  for (size_t at = 0; at < text.size(); ++at) {
    if (quoted && text[at] == '\\') {
      ++at;
    } else if (text[at] == '"') {
      quoted = !quoted;
    } else if (text[at] == separator && !quoted) {
      parts.push_back(Strip(text.substr(start, at - start)));
      start = at + 1;
    }
  }
  parts.push_back(Strip(text.substr(start)));
  return parts;
}

}  // namespace

RetryDecision DecideRetry(const RetryRules& rules, RetryState* state, const RetryFailure& failure, TimePoint now,
                          double jitter) {
  if (!failure.transient) return {std::nullopt, failure.what};
  if (state->failures > 0 && WentOn(rules, *state, now)) *state = {};
  if (state->failures++ == 0) *state = {1, now, 0};
  const Duration waited = now - state->since;
  if (failure.asked && *failure.asked > rules.longest_asked) {
    return {std::nullopt, fmt::format("{}; the server asks for a pause of {:.0f} s, and Muster waits {:.0f} s at most",
                                      failure.what, Seconds(*failure.asked), Seconds(rules.longest_asked))};
  }
  if (waited >= rules.patience) {
    return {std::nullopt, fmt::format("{}; giving up after {:.0f} s without progress ({})", failure.what,
                                      Seconds(waited), Counted(state->failures, "failure"))};
  }
  const Duration half = Doubled(rules.first, Longest(rules, failure), state->failures) / 2;
  const auto spread = std::chrono::duration_cast<Duration>(half * std::clamp(jitter, 0.0, 1.0));
  const Duration pause =
      failure.asked ? std::max(half, *failure.asked) + spread : std::min(half + spread, rules.patience - waited);
  return {pause, fmt::format("{}, trying again in {:.1f} s{} ({})", failure.what, Seconds(pause),
                             failure.asked ? " as the server asks" : "", Counted(state->failures, "failure"))};
}

void NoteProgress(RetryState* state, uint64_t bytes) { state->bytes += bytes; }

std::optional<Duration> ParseRetryAfter(std::string_view value, int64_t unix_now) {
  value = Strip(value);
  if (const auto number = ParseSeconds(value)) return seconds(*number);
  const auto date = ParseDate(value, unix_now);
  if (!date || *date < unix_now) return std::nullopt;
  return seconds(std::min(*date - unix_now, kYear));
}

std::optional<Duration> ParseRateLimit(std::string_view value) {
  std::optional<Duration> longest;
  for (std::string_view item : SplitOutsideQuotes(value, ',')) {
    std::optional<int64_t> remaining, reset;
    for (std::string_view parameter : SplitOutsideQuotes(item, ';')) {
      if (parameter.starts_with("r=")) remaining = ParseSeconds(parameter.substr(2));
      if (parameter.starts_with("t=")) reset = ParseSeconds(parameter.substr(2));
    }
    if (remaining == 0 && reset) longest = std::max<Duration>(longest.value_or(Duration::zero()), seconds(*reset + 1));
  }
  return longest;
}

}  // namespace muster::http

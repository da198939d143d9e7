#include "initializers/retry.h"

#include <algorithm>
#include <array>
#include <chrono>
#include <vector>

#include "base/text.h"

namespace muster::initializers {
namespace {

using std::chrono::seconds;

constexpr int64_t kYear = int64_t{365} * 24 * 3600;  // seconds

double Seconds(Duration duration) { return std::chrono::duration<double>(duration).count(); }

Duration Doubled(const RetryRules& rules, int failures) {
  Duration pause = rules.first;
  for (int i = 1; i < failures && pause < rules.longest; ++i) pause *= 2;
  return std::min(pause, rules.longest);
}

std::string Times(int failures) { return failures == 1 ? "1 failure" : fmt::format("{} failures", failures); }

// Digits only, at most a year where they say more; nothing where there is something else.
std::optional<int64_t> ParseSeconds(std::string_view text) {
  if (text.empty() || text.find_first_not_of("0123456789") != std::string_view::npos) return std::nullopt;
  return std::min(ParseInt(text).value_or(kYear), kYear);
}

// A text being read from its start. Each step is strict, and none matters after one has failed.
class Reader {
 public:
  explicit Reader(std::string_view text) : rest_(text) {}

  void Skip(std::string_view expected) {
    if (!rest_.starts_with(expected)) return Fail();
    rest_.remove_prefix(expected.size());
  }
  int Number(size_t digits) {
    const auto number = rest_.size() < digits ? std::nullopt : ParseSeconds(rest_.substr(0, digits));
    if (!number) return Fail(), 0;
    rest_.remove_prefix(digits);
    return static_cast<int>(*number);
  }
  // The index of the name that the text begins with.
  template <size_t N>
  int OneOf(const std::array<std::string_view, N>& names) {
    for (size_t i = 0; i < N; ++i) {
      if (!rest_.starts_with(names[i])) continue;
      rest_.remove_prefix(names[i].size());
      return static_cast<int>(i);
    }
    return Fail(), 0;
  }
  bool done() const { return good_ && rest_.empty(); }

 private:
  void Fail() { good_ = false; }
  std::string_view rest_;
  bool good_ = true;
};

constexpr std::array<std::string_view, 7> kDays = {"Mon", "Tue", "Wed", "Thu", "Fri", "Sat", "Sun"};
constexpr std::array<std::string_view, 7> kLongDays = {"Monday", "Tuesday",  "Wednesday", "Thursday",
                                                       "Friday", "Saturday", "Sunday"};
constexpr std::array<std::string_view, 12> kMonths = {"Jan", "Feb", "Mar", "Apr", "May", "Jun",
                                                      "Jul", "Aug", "Sep", "Oct", "Nov", "Dec"};

struct Date {
  int year = 0, month = 0, day = 0, hour = 0, minute = 0, second = 0;
};

void ReadTime(Reader* reader, Date* date) {
  date->hour = reader->Number(2);
  reader->Skip(":");
  date->minute = reader->Number(2);
  reader->Skip(":");
  date->second = reader->Number(2);
}

// "Sun, 06 Nov 1994 08:49:37 GMT"
std::optional<Date> ReadFixdate(std::string_view text) {
  Reader reader(text);
  Date date;
  reader.OneOf(kDays);
  reader.Skip(", ");
  date.day = reader.Number(2);
  reader.Skip(" ");
  date.month = reader.OneOf(kMonths) + 1;
  reader.Skip(" ");
  date.year = reader.Number(4);
  reader.Skip(" ");
  ReadTime(&reader, &date);
  reader.Skip(" GMT");
  return reader.done() ? std::optional(date) : std::nullopt;
}

// "Sunday, 06-Nov-94 08:49:37 GMT": a year that would be more than fifty years ahead is the past century's.
std::optional<Date> ReadRfc850Date(std::string_view text, int this_year) {
  Reader reader(text);
  Date date;
  reader.OneOf(kLongDays);
  reader.Skip(", ");
  date.day = reader.Number(2);
  reader.Skip("-");
  date.month = reader.OneOf(kMonths) + 1;
  reader.Skip("-");
  date.year = this_year / 100 * 100 + reader.Number(2);
  if (date.year > this_year + 50) date.year -= 100;
  reader.Skip(" ");
  ReadTime(&reader, &date);
  reader.Skip(" GMT");
  return reader.done() ? std::optional(date) : std::nullopt;
}

// "Sun Nov  6 08:49:37 1994"
std::optional<Date> ReadAsctimeDate(std::string_view text) {
  Reader reader(text);
  Date date;
  reader.OneOf(kDays);
  reader.Skip(" ");
  date.month = reader.OneOf(kMonths) + 1;
  reader.Skip(" ");
  const bool one_digit = text.size() > 8 && text[8] == ' ';
  if (one_digit) reader.Skip(" ");
  date.day = reader.Number(one_digit ? 1 : 2);
  reader.Skip(" ");
  ReadTime(&reader, &date);
  reader.Skip(" ");
  date.year = reader.Number(4);
  return reader.done() ? std::optional(date) : std::nullopt;
}

// Seconds since 1970, of any of the three.
std::optional<int64_t> ParseHttpDate(std::string_view text, int64_t unix_now) {
  const auto today = std::chrono::floor<std::chrono::days>(std::chrono::sys_seconds(seconds(unix_now)));
  const int this_year = static_cast<int>(std::chrono::year_month_day(today).year());
  std::optional<Date> date = ReadFixdate(text);
  if (!date) date = ReadRfc850Date(text, this_year);
  if (!date) date = ReadAsctimeDate(text);
  if (!date || date->hour > 23 || date->minute > 59 || date->second > 60) return std::nullopt;
  const std::chrono::year_month_day day{std::chrono::year(date->year),
                                        std::chrono::month(static_cast<unsigned>(date->month)),
                                        std::chrono::day(static_cast<unsigned>(date->day))};
  if (!day.ok()) return std::nullopt;
  const auto time = std::chrono::hours(date->hour) + std::chrono::minutes(date->minute) + seconds(date->second);
  return (std::chrono::sys_days(day).time_since_epoch() + time).count();
}

// Parts of a structured field (RFC 9651) between separators that are not in a quoted string.
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

RetryDecision Decide(const RetryRules& rules, RetryState* state, const Failure& failure, TimePoint now, double jitter) {
  if (!failure.transient) return {std::nullopt, failure.what};
  if (state->failures++ == 0) state->since = now;
  const Duration waited = now - state->since;
  if (failure.asked && *failure.asked > rules.longest_asked) {
    return {std::nullopt,
            fmt::format("{}; the server asks to be left alone for {:.0f} s, and Muster waits {:.0f} s at most",
                        failure.what, Seconds(*failure.asked), Seconds(rules.longest_asked))};
  }
  if (waited >= rules.patience) {
    return {std::nullopt, fmt::format("{}; giving up after {:.0f} s without progress ({})", failure.what,
                                      Seconds(waited), Times(state->failures))};
  }
  const Duration half = Doubled(rules, state->failures) / 2;
  const auto spread = std::chrono::duration_cast<Duration>(half * std::clamp(jitter, 0.0, 1.0));
  const Duration pause =
      failure.asked ? std::max(half, *failure.asked) + spread : std::min(half + spread, rules.patience - waited);
  return {pause, fmt::format("{}, trying again in {:.1f} s{} ({})", failure.what, Seconds(pause),
                             failure.asked ? " as the server asks" : "", Times(state->failures))};
}

void Progress(RetryState* state) { *state = {}; }

std::optional<Duration> ParseRetryAfter(std::string_view value, int64_t unix_now) {
  value = Strip(value);
  if (const auto number = ParseSeconds(value)) return seconds(*number);
  const auto date = ParseHttpDate(value, unix_now);
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

}  // namespace muster::initializers

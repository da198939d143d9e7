// SPDX-License-Identifier: Apache-2.0
#include "http/date.h"

#include <array>
#include <chrono>

#include "base/text.h"

namespace muster::http {
namespace {

using std::chrono::seconds;

// Reads a text from its start. Each step is strict; after a failed step done() is false.
class Reader {
 public:
  explicit Reader(std::string_view text) : rest_(text) {}

  void Skip(std::string_view expected) {
    if (!rest_.starts_with(expected)) return Fail();
    rest_.remove_prefix(expected.size());
  }
  int Number(size_t digits) {
    const std::string_view text = rest_.substr(0, digits);
    if (text.size() < digits || text.find_first_not_of("0123456789") != std::string_view::npos) return Fail(), 0;
    rest_.remove_prefix(digits);
    return static_cast<int>(ParseInt(text).value_or(0));
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

// "Sunday, 06-Nov-94 08:49:37 GMT". A year more than fifty years ahead belongs to the century before.
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

}  // namespace

std::optional<int64_t> ParseDate(std::string_view text, int64_t unix_now) {
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

}  // namespace muster::http

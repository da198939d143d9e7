// SPDX-License-Identifier: Apache-2.0
#include "base/iso_time.h"

#include <chrono>
#include <optional>

#include "base/quoted.h"
#include "base/text.h"

namespace muster {
namespace {

bool IsDigit(char c) { return c >= '0' && c <= '9'; }

// Takes fixed fields off the front of a text. After the first field that does not fit, good() is false.
class Fields {
 public:
  explicit Fields(std::string_view text) : rest_(text) {}

  int Number(size_t digits) {
    int number = 0;
    for (size_t i = 0; i < digits; ++i) {
      if (i >= rest_.size() || !IsDigit(rest_[i])) {
        good_ = false;
        return 0;
      }
      number = number * 10 + (rest_[i] - '0');
    }
    rest_.remove_prefix(digits);
    return number;
  }
  bool Skip(std::string_view one_of) {
    if (rest_.empty() || one_of.find(rest_[0]) == std::string_view::npos) return false;
    rest_.remove_prefix(1);
    return true;
  }
  void Need(std::string_view one_of) { good_ = Skip(one_of) && good_; }
  // One digit or more, of which the first six count: "5" and "500000999" are half a second.
  std::chrono::microseconds Fraction() {
    std::chrono::microseconds::rep number = Number(1);
    int digits = 1;
    for (; !rest_.empty() && IsDigit(rest_[0]); rest_.remove_prefix(1)) {
      if (digits < 6) ++digits, number = number * 10 + (rest_[0] - '0');
    }
    for (; digits < 6; ++digits) number *= 10;
    return std::chrono::microseconds(number);
  }

  std::string_view rest() const { return rest_; }
  bool good() const { return good_; }

 private:
  std::string_view rest_;
  bool good_ = true;
};

std::optional<WallTime> Read(std::string_view text) {
  using namespace std::chrono;
  Fields fields(text);
  const int years = fields.Number(4);
  fields.Need("-");
  const int months = fields.Number(2);
  fields.Need("-");
  const int days_of_month = fields.Number(2);
  fields.Need("Tt ");
  const int hour = fields.Number(2);
  fields.Need(":");
  const int minute = fields.Number(2);
  fields.Need(":");
  const int second = fields.Number(2);
  microseconds fraction{};
  if (fields.Skip(".,")) fraction = fields.Fraction();

  int offset = 0;  // minutes east of Greenwich
  if (fields.rest() != "Z" && fields.rest() != "z" && fields.rest() != "UTC") {
    const bool west = fields.rest().starts_with('-');
    fields.Need("+-");
    const int hours_off = fields.Number(2);
    fields.Skip(":");
    const int minutes_off = fields.Number(2);
    if (!fields.rest().empty() || hours_off > 23 || minutes_off > 59) return std::nullopt;
    offset = (west ? -1 : 1) * (60 * hours_off + minutes_off);
  }
  const year_month_day date{year{years}, month{static_cast<unsigned>(months)},
                            day{static_cast<unsigned>(days_of_month)}};
  if (!fields.good() || !date.ok() || hour > 23 || minute > 59 || second > 60) return std::nullopt;
  const auto time = sys_days{date} + hours{hour} + minutes{minute - offset} + seconds{second};
  return time + fraction;
}

}  // namespace

StatusOr<WallTime> ParseWallTime(std::string_view text) {
  auto time = Read(Strip(text));
  if (time) return *time;
  constexpr size_t kShown = 40;
  return absl::InvalidArgumentError(
      fmt::format("{} is not a time; write it as 2026-11-22T01:02:03Z", Quoted(text, kShown)));
}

StatusOr<int64_t> ParseIsoTime(std::string_view text) {
  MUSTER_ASSIGN_OR_RETURN(const WallTime time, ParseWallTime(text));
  return std::chrono::floor<std::chrono::seconds>(time).time_since_epoch().count();
}

std::string IsoTime(WallTime time) {
  const auto day = std::chrono::floor<std::chrono::days>(time);
  const std::chrono::year_month_day date(day);
  const std::chrono::hh_mm_ss clock(std::chrono::floor<std::chrono::seconds>(time - day));
  return fmt::format("{:04}-{:02}-{:02}T{:02}:{:02}:{:02}Z", static_cast<int>(date.year()),
                     static_cast<unsigned>(date.month()), static_cast<unsigned>(date.day()), clock.hours().count(),
                     clock.minutes().count(), clock.seconds().count());
}

std::string IsoMicroTime(WallTime time) {
  std::string text = IsoTime(time);
  const auto fraction = time - std::chrono::floor<std::chrono::seconds>(time);
  text.insert(text.size() - 1, fmt::format(".{:06}", fraction.count()));
  return text;
}

}  // namespace muster

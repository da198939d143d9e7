// SPDX-License-Identifier: Apache-2.0
#include "controller/api/quantity.h"

#include <algorithm>
#include <limits>
#include <optional>
#include <string>

#include "base/quoted.h"
#include "base/text.h"

namespace muster::controller {
namespace {

__extension__ typedef __int128 Wide;

constexpr int64_t kNano = 1'000'000'000;
constexpr int kNanoDigits = 9;
constexpr Wide kMost = Wide{std::numeric_limits<int64_t>::max()} * kNano;

bool IsDigit(char c) { return c >= '0' && c <= '9'; }

// Removes the leading digits of `text` and returns them.
std::string_view TakeDigits(std::string_view& text) {
  const auto end = std::find_if_not(text.begin(), text.end(), IsDigit);
  const std::string_view digits = text.substr(0, static_cast<size_t>(end - text.begin()));
  text.remove_prefix(digits.size());
  return digits;
}

// 10 * value + digit, kMost at most.
Wide Append(Wide value, int digit) { return std::min(value * 10 + digit, kMost); }

// The unit behind the number: 10^tens or 1024^kibis.
struct Unit {
  int tens = 0;
  int kibis = 0;
};

std::optional<Unit> UnitOf(std::string_view suffix) {
  if (suffix.empty()) return Unit{};
  constexpr std::string_view kDecimal = "num kMGTPE";  // 10^-9, 10^-6, 10^-3 ... 10^18
  constexpr std::string_view kBinary = "KMGTPE";
  if (suffix.size() == 1 && suffix != " ") {
    const size_t at = kDecimal.find(suffix[0]);
    if (at != std::string_view::npos) return Unit{.tens = 3 * static_cast<int>(at) - kNanoDigits};
  }
  if (suffix.size() == 2 && suffix[1] == 'i') {
    const size_t at = kBinary.find(suffix[0]);
    if (at != std::string_view::npos) return Unit{.kibis = static_cast<int>(at) + 1};
  }
  if (suffix.size() > 1 && (suffix[0] == 'e' || suffix[0] == 'E')) {
    std::string_view exponent = suffix.substr(1);
    if (exponent.starts_with('+')) {
      exponent.remove_prefix(1);
      if (exponent.starts_with('-')) return std::nullopt;
    }
    const auto tens = ParseInt(exponent);
    constexpr int64_t kLimit = 1000;  // beyond it every amount is the limit or a billionth
    if (!tens) return std::nullopt;
    return Unit{.tens = static_cast<int>(std::clamp(*tens, -kLimit, kLimit))};
  }
  return std::nullopt;
}

// whole.fraction * 10^tens, in billionths.
Wide Decimal(std::string_view whole, std::string_view fraction, int tens) {
  const std::string digits = std::string(whole) + std::string(fraction);
  const int64_t shift = kNanoDigits + tens - static_cast<int64_t>(fraction.size());
  const size_t kept = shift >= 0 ? digits.size() : digits.size() - std::min<size_t>(digits.size(), -shift);
  Wide value = 0;
  for (size_t i = 0; i < kept; ++i) value = Append(value, digits[i] - '0');
  if (std::any_of(digits.begin() + kept, digits.end(), [](char c) { return c != '0'; })) ++value;
  for (int64_t i = 0; i < shift && value != 0 && value != kMost; ++i) value = Append(value, 0);
  return std::min(value, kMost);
}

// whole.fraction * 1024^kibis, in billionths; `fraction` has at most 18 digits.
Wide Binary(std::string_view whole, std::string_view fraction, int kibis) {
  const Wide factor = Wide{1} << (10 * kibis);
  Wide units = 0;
  for (char c : whole) units = std::min<Wide>(units * 10 + (c - '0'), std::numeric_limits<int64_t>::max());
  units *= factor;  // below 2^123
  if (units > std::numeric_limits<int64_t>::max()) return kMost;

  Wide parts = 0, of = 1;  // the fraction is parts / of
  for (char c : fraction) parts = parts * 10 + (c - '0'), of *= 10;
  parts *= factor;
  const Wide rest = parts % of * kNano;
  return std::min(units * kNano + parts / of * kNano + (rest + of - 1) / of, kMost);
}

}  // namespace

Quantity::Quantity(int64_t units) : nanos_(std::max(Nanos{units} * kNano, -kMost)) {}

int64_t Quantity::Units() const {
  const Nanos up = nanos_ < 0 ? -(kNano - 1) : kNano - 1;
  return static_cast<int64_t>((nanos_ + up) / kNano);
}

std::string Quantity::Text() const {
  constexpr const char* kUnits[] = {"", "m", "u", "n"};
  Nanos per_unit = kNano;
  for (const char* unit : kUnits) {
    if (nanos_ % per_unit == 0) {
      // Counted in m, u or n the number may not fit an int64_t. Then whole units are exact enough.
      const Nanos number = nanos_ / per_unit;
      if (number > std::numeric_limits<int64_t>::max() || number < -std::numeric_limits<int64_t>::max()) break;
      return fmt::format("{}{}", static_cast<int64_t>(number), unit);
    }
    per_unit /= 1000;
  }
  return fmt::format("{}", Units());
}

Quantity Quantity::operator+(Quantity other) const {
  Quantity sum;
  sum.nanos_ = std::clamp<Nanos>(nanos_ + other.nanos_, -kMost, kMost);
  return sum;
}

Quantity Quantity::Times(int64_t count) const {
  // An amount has 94 bits at most, so the product fits 128 bits.
  constexpr int64_t kMostCount = std::numeric_limits<int32_t>::max();
  Quantity product;
  product.nanos_ = std::clamp<Nanos>(nanos_ * std::clamp(count, -kMostCount, kMostCount), -kMost, kMost);
  return product;
}

StatusOr<Quantity> ParseQuantity(std::string_view text) {
  constexpr size_t kLongest = 256, kMostBinaryFraction = 18;
  std::string_view rest = text.substr(0, kLongest);
  const bool negative = rest.starts_with('-');
  if (negative || rest.starts_with('+')) rest.remove_prefix(1);
  const std::string_view whole = TakeDigits(rest);
  std::string_view fraction;
  bool digits = !whole.empty();
  if (rest.starts_with('.')) {
    rest.remove_prefix(1);
    fraction = TakeDigits(rest);
    digits = digits || !fraction.empty();
    fraction = fraction.substr(0, fraction.find_last_not_of('0') + 1);
  }
  const auto unit = UnitOf(rest);
  const bool good =
      unit && digits && text.size() <= kLongest && (unit->kibis == 0 || fraction.size() <= kMostBinaryFraction);
  if (!good) {
    return absl::InvalidArgumentError(
        fmt::format("{} is not a quantity such as 4, 500m, 16Gi or 2e3", Quoted(text, /*most=*/64)));
  }
  const Wide nanos = unit->kibis == 0 ? Decimal(whole, fraction, unit->tens) : Binary(whole, fraction, unit->kibis);
  Quantity quantity;
  quantity.nanos_ = negative ? -nanos : nanos;
  return quantity;
}

StatusOr<Quantity> ReadQuantity(const Json& value) {
  if (value.is_string()) return ParseQuantity(value.get_ref<const std::string&>());
  if (value.is_number()) return ParseQuantity(WriteJson(value));
  return absl::InvalidArgumentError(
      fmt::format("{} is not a quantity such as 4, 500m, 16Gi or 2e3", value.is_array()    ? "a list"
                                                                       : value.is_object() ? "an object"
                                                                                           : WriteJson(value)));
}

}  // namespace muster::controller

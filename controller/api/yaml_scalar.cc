// SPDX-License-Identifier: Apache-2.0
#include "controller/api/yaml_scalar.h"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <string>

#include "base/text.h"

namespace muster::controller {
namespace {

constexpr std::string_view kTrue[] = {"y", "Y", "yes", "Yes", "YES", "true", "True", "TRUE", "on", "On", "ON"};
constexpr std::string_view kFalse[] = {"n", "N", "no", "No", "NO", "false", "False", "FALSE", "off", "Off", "OFF"};
constexpr std::string_view kNull[] = {"", "~", "null", "Null", "NULL"};
constexpr std::string_view kNoJson[] = {".nan",  ".NaN",  ".NAN",  ".inf",  ".Inf",  ".INF",
                                        "+.inf", "+.Inf", "+.INF", "-.inf", "-.Inf", "-.INF"};

template <size_t size>
bool IsOneOf(std::string_view text, const std::string_view (&words)[size]) {
  return std::find(std::begin(words), std::end(words), text) != std::end(words);
}

bool IsDigit(char c) { return c >= '0' && c <= '9'; }

size_t Digits(std::string_view text) {
  return static_cast<size_t>(std::find_if_not(text.begin(), text.end(), IsDigit) - text.begin());
}

// [-+]?(\.[0-9]+|[0-9]+(\.[0-9]*)?)([eE][-+]?[0-9]+)?
bool IsFloat(std::string_view text) {
  const auto skip = [&](std::string_view one_of) {
    const bool there = !text.empty() && one_of.find(text[0]) != std::string_view::npos;
    if (there) text.remove_prefix(1);
    return there;
  };
  skip("-+");
  const size_t whole = Digits(text);
  text.remove_prefix(whole);
  size_t fraction = 0;
  if (skip(".")) fraction = Digits(text);
  text.remove_prefix(fraction);
  if (whole + fraction == 0) return false;
  if (!skip("eE")) return text.empty();
  skip("-+");
  return !text.empty() && Digits(text) == text.size();
}

// Prefixes: 0x, 0o, 0b; a bare 0 is octal too.
std::optional<Json> Integer(std::string_view text) {
  const bool negative = text.starts_with('-');
  const bool sign = negative || text.starts_with('+');
  if (sign) text.remove_prefix(1);
  int base = 10;
  if (text.size() > 1 && text[0] == '0') {
    const char kind = text[1];
    base = kind == 'x' || kind == 'X' ? 16 : kind == 'b' || kind == 'B' ? 2 : 8;
    text.remove_prefix(base == 8 && kind != 'o' && kind != 'O' ? 1 : 2);
  }
  uint64_t number = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number, base);
  if (text.empty() || error != std::errc() || end != text.data() + text.size()) return std::nullopt;
  constexpr uint64_t kMost = std::numeric_limits<int64_t>::max();
  if (!sign) return number <= kMost ? Json(static_cast<int64_t>(number)) : Json(number);
  if (number > kMost + (negative ? 1 : 0)) return std::nullopt;
  return Json(static_cast<int64_t>(negative ? -number : number));
}

// A number without a fraction becomes an integer up to 2^53, as in Kubernetes' JSON: 1e3 is 1000.
std::optional<Json> Float(std::string_view text) {
  if (text.starts_with('+')) text.remove_prefix(1);
  double number = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  if (error != std::errc() || end != text.data() + text.size() || !std::isfinite(number)) return std::nullopt;
  constexpr double kExact = 9007199254740992.0;  // 2^53
  if (std::trunc(number) == number && number >= -kExact && number <= kExact) return Json(static_cast<int64_t>(number));
  return Json(number);
}

}  // namespace

std::optional<Json> PlainScalar(std::string_view text) {
  if (IsOneOf(text, kNull)) return Json();
  if (IsOneOf(text, kTrue)) return Json(true);
  if (IsOneOf(text, kFalse)) return Json(false);
  if (IsOneOf(text, kNoJson)) return std::nullopt;
  if (!IsDigit(text[0]) && text[0] != '-' && text[0] != '+' && text[0] != '.') return Json(text);
  std::string plain(text);
  if (text[0] != '.') plain.erase(std::remove(plain.begin(), plain.end(), '_'), plain.end());
  if (auto integer = Integer(plain)) return integer;
  if (IsFloat(plain)) {
    if (auto number = Float(plain)) return number;
  }
  return Json(text);
}

}  // namespace muster::controller

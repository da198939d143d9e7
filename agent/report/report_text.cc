// SPDX-License-Identifier: Apache-2.0
#include "agent/report/report_text.h"

#include <algorithm>
#include <cmath>
#include <ctime>

#include "base/text.h"
#include "base/utf8.h"

namespace muster::agent {
namespace {

constexpr int64_t kSecond = 1000;
constexpr int64_t kMinute = 60 * kSecond;
constexpr int64_t kHour = 60 * kMinute;
constexpr int64_t kDay = 24 * kHour;

bool MayBeShown(uint32_t code) {
  if (code < 0x20) return code == '\n' || code == '\t';
  if (code >= 0x7F && code < 0xA0) return false;
  bool turns_direction = (code >= 0x202A && code <= 0x202E) || (code >= 0x2066 && code <= 0x2069);
  bool no_character = (code & 0xFFFE) == 0xFFFE || (code >= 0xFDD0 && code <= 0xFDEF);
  return !turns_direction && !no_character;
}

// The length of a terminal sequence ("ESC [ 31;1 m") at the start of `text`; 0 if there is none.
size_t TerminalSequence(std::string_view text) {
  if (!text.starts_with("\x1b[")) return 0;
  for (size_t at = 2; at < text.size(); ++at) {
    if (text[at] >= 0x40 && text[at] <= 0x7E) return at + 1;
    if (text[at] < 0x20 || text[at] > 0x3F) return 0;
  }
  return 0;
}

bool Continues(char byte) { return (static_cast<unsigned char>(byte) & 0xC0) == 0x80; }

// Appends what stands for the character `code` in HTML. False: the character stands for itself.
bool AddEntity(uint32_t code, std::string& html) {
  switch (code) {
    case '&':
      html += "&amp;";
      return true;
    case '<':
      html += "&lt;";
      return true;
    case '>':
      html += "&gt;";
      return true;
    case '"':
      html += "&quot;";
      return true;
    case '\'':
      html += "&#39;";
      return true;
  }
  return false;
}

std::string Cleaned(std::string_view text, bool for_html) {
  std::string clean;
  clean.reserve(text.size() + text.size() / 8);
  while (!text.empty()) {
    if (size_t length = TerminalSequence(text)) {
      text.remove_prefix(length);
      continue;
    }
    const auto [code, size, valid] = FirstCharacter(text);
    if (code == '\r') {
      if (!text.starts_with("\r\n")) clean += '\n';
    } else if (!valid || !MayBeShown(code)) {
      clean += kReplacementCharacter;
    } else if (!for_html || !AddEntity(code, clean)) {
      clean += text.substr(0, size);
    }
    text.remove_prefix(valid ? size : 1);  // one U+FFFD for each invalid byte
  }
  return clean;
}

}  // namespace

std::string ShownText(std::string_view text) { return Cleaned(text, false); }

std::string EscapeHtml(std::string_view text) { return Cleaned(text, true); }

std::string LastPart(std::string_view text, size_t limit) {
  if (text.size() <= limit) return std::string(text);
  text.remove_prefix(text.size() - limit);
  size_t line = text.find('\n');
  if (line != std::string_view::npos && line < limit / 2) {
    text.remove_prefix(line + 1);
  } else {
    while (!text.empty() && Continues(text.front())) text.remove_prefix(1);
  }
  return "...\n" + std::string(text);
}

std::string FormatSpan(int64_t millis) {
  millis = std::max<int64_t>(millis, 0);
  if (millis < kSecond) return fmt::format("{} ms", millis);
  if (millis < 10 * kSecond) return fmt::format("{:.2f} s", static_cast<double>(millis) / 1000);
  if (millis < kMinute) return fmt::format("{:.1f} s", static_cast<double>(millis - millis % 100) / 1000);
  if (millis < kHour) return fmt::format("{} min {:02} s", millis / kMinute, millis % kMinute / kSecond);
  if (millis < kDay) return fmt::format("{} h {:02} min", millis / kHour, millis % kHour / kMinute);
  return fmt::format("{} d {} h", millis / kDay, millis % kDay / kHour);
}

std::string FormatSeconds(double seconds) { return FormatSpan(std::llround(seconds * kSecond)); }

std::string FormatMoment(int64_t unix_millis) {
  std::time_t seconds = unix_millis / kSecond;
  std::tm utc{};
  if (unix_millis < 0 || gmtime_r(&seconds, &utc) == nullptr || utc.tm_year > 9999 - 1900) return "";
  char text[32];
  return std::string(text, std::strftime(text, sizeof text, "%Y-%m-%d %H:%M:%S UTC", &utc));
}

std::string FormatBytes(int64_t bytes) {
  constexpr double kMebi = 1 << 20;
  auto size = static_cast<double>(bytes);
  if (size >= 1024 * kMebi) return fmt::format("{:.1f} GiB", size / (1024 * kMebi));
  return fmt::format("{:.0f} MiB", size / kMebi);
}

std::string FormatLoss(double loss) { return fmt::format("{:.4g}", loss); }

std::string FormatPosition(double position, bool in_epochs) {
  return in_epochs ? fmt::format("{:.4g}", position) : fmt::format("{:.0f}", position);
}

std::vector<int64_t> AxisTicks(int64_t span, int most) {
  constexpr int64_t kSteps[] = {1,        2,         5,           10,          20,           50,           100,
                                200,      500,       kSecond,     2 * kSecond, 5 * kSecond,  10'000,       20'000,
                                30'000,   kMinute,   2 * kMinute, 5 * kMinute, 10 * kMinute, 20 * kMinute, 30 * kMinute,
                                kHour,    2 * kHour, 4 * kHour,   8 * kHour,   12 * kHour,   kDay,         2 * kDay,
                                5 * kDay, 10 * kDay, 30 * kDay};
  int64_t step = kSteps[0];
  for (int64_t candidate : kSteps) {
    step = candidate;
    if (span / step <= most) break;
  }
  while (span / step > most) step *= 2;
  std::vector<int64_t> ticks;
  for (int64_t at = 0; at <= span; at += step) ticks.push_back(at);
  return ticks;
}

std::string FormatTick(int64_t millis) {
  if (millis == 0) return "0";
  if (millis < kSecond) return fmt::format("{} ms", millis);
  if (millis % kDay == 0) return fmt::format("{} d", millis / kDay);
  if (millis >= kDay) return fmt::format("{} d {} h", millis / kDay, millis % kDay / kHour);
  if (millis % kHour == 0) return fmt::format("{} h", millis / kHour);
  if (millis >= kHour) return fmt::format("{} h {:02}", millis / kHour, millis % kHour / kMinute);
  if (millis % kMinute == 0) return fmt::format("{} min", millis / kMinute);
  if (millis >= kMinute) return fmt::format("{}:{:02} min", millis / kMinute, millis % kMinute / kSecond);
  return fmt::format("{:g} s", static_cast<double>(millis) / 1000);
}

}  // namespace muster::agent

// SPDX-License-Identifier: Apache-2.0
#include "agent/live/top_text.h"

#include <algorithm>
#include <cmath>

#include "agent/report/report_text.h"
#include "base/text.h"

namespace muster::agent {
namespace {

double InSeconds(Duration span) { return std::max(0.0, std::chrono::duration<double>(span).count()); }

std::string LargeSpan(double seconds) {
  if (seconds < 100 * 60) return fmt::format("{:.0f}m", std::floor(seconds / 60));
  if (seconds < 48 * 3600) return fmt::format("{:.0f}h", std::floor(seconds / 3600));
  return fmt::format("{:.0f}d", std::min(9999.0, std::floor(seconds / 86400)));
}

}  // namespace

std::string ShortSpan(Duration span) {
  const double seconds = InSeconds(span);
  if (seconds < 0.9995) return fmt::format("{:.0f}ms", seconds * 1000);
  if (seconds < 9.95) return fmt::format("{:.1f}s", seconds);
  if (seconds < 100) return fmt::format("{:.0f}s", seconds);
  return LargeSpan(seconds);
}

std::string ShortAge(Duration age) {
  const double seconds = InSeconds(age);
  if (seconds < 60) return fmt::format("{:.0f}s", std::floor(seconds));
  return LargeSpan(seconds);
}

std::string ShortBytes(int64_t bytes) {
  double value = static_cast<double>(std::max<int64_t>(0, bytes)) / 1024;
  for (const char unit : std::string_view("KMGT")) {
    if (value < 9.95 && unit != 'K') return fmt::format("{:.1f}{}", value, unit);
    if (value < 1000 || unit == 'T') return fmt::format("{:.0f}{}", std::min(value, 9999.0), unit);
    value /= 1024;
  }
  return kUnknownCell;
}

std::string ShortPosition(double position) {
  if (!std::isfinite(position)) return kUnknownCell;
  if (std::fabs(position) >= 1e8) return fmt::format("{:.2e}", position);
  if (position == std::floor(position)) return fmt::format("{:.0f}", position);
  return fmt::format("{:.2f}", position);
}

std::string ShortLoss(double loss) { return std::isfinite(loss) ? fmt::format("{:.4g}", loss) : kUnknownCell; }

std::string ShareText(double share) {
  if (!std::isfinite(share)) return kUnknownCell;
  const double percent = std::clamp(share, 0.0, 1.0) * 100;
  return fmt::format("{:.0f}%", percent > 0 ? std::max(1.0, percent) : 0.0);
}

std::string LongSpan(Duration span) {
  return FormatSpan(std::max<int64_t>(0, std::chrono::duration_cast<std::chrono::milliseconds>(span).count()));
}

bool HasPart(std::string_view text, std::string_view part) {
  const auto lower = [](char c) { return c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c; };
  return part.empty() || std::search(text.begin(), text.end(), part.begin(), part.end(),
                                     [lower](char a, char b) { return lower(a) == b; }) != text.end();
}

}  // namespace muster::agent

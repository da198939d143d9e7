// SPDX-License-Identifier: Apache-2.0
#include "agent/page/time_bar.h"

#include <algorithm>
#include <array>
#include <numeric>

#include "agent/report/report_text.h"
#include "base/text.h"

namespace muster::agent {
namespace {

// In the order in which they are shown: what trained comes first.
struct Use {
  TimeUse use;
  std::string_view name, meaning;
};
constexpr std::array<Use, kTimeUses> kUses = {{
    {TimeUse::kTraining, "Training", "work that was not done before"},
    {TimeUse::kRedone, "Done again", "work that an earlier attempt had done"},
    {TimeUse::kRestart, "Restart", "from a failure until the workers run again"},
    {TimeUse::kStart, "Start", "from the start of the workers until they train"},
    {TimeUse::kHang, "Hang", "from the last sign of progress until the hang was found"},
    {TimeUse::kWaiting, "Waiting", "until the first round"},
}};

int64_t Millis(Duration duration) { return std::max<int64_t>(0, duration / std::chrono::milliseconds(1)); }

int64_t Total(const TimeSpent& spent) {
  return std::accumulate(spent.begin(), spent.end(), int64_t{0},
                         [](int64_t sum, Duration duration) { return sum + Millis(duration); });
}

}  // namespace

std::string Percent(double share) { return fmt::format("{:.1f} %", 100 * share); }

std::string TimeBar(const TimeSpent& spent) {
  const auto total = static_cast<double>(Total(spent));
  if (total == 0) return "";
  std::string bar, rows;
  double from = 0;
  for (const Use& use : kUses) {
    const int64_t millis = Millis(spent[static_cast<size_t>(use.use)]);
    if (millis == 0) continue;
    const double share = static_cast<double>(millis) / total;
    const std::string_view css = TimeUseName(use.use);
    bar += fmt::format("<rect class=\"{}\" x=\"{:.2f}%\" width=\"{:.2f}%\" height=\"18\"><title>{}: {}</title></rect>",
                       css, 100 * from, 100 * share, use.name, FormatSpan(millis));
    rows += fmt::format(
        "<tr><th scope=\"row\"><i class=\"key {}\"></i>{}</th><td>{}</td><td class=\"num\">{}</td>"
        "<td class=\"num\">{}</td></tr>\n",
        css, use.name, use.meaning, FormatSpan(millis), Percent(share));
    from += share;
  }
  return fmt::format(
      "<svg class=\"stack\" width=\"100%\" height=\"18\" role=\"img\" aria-label=\"{} of the time went into training; "
      "the table "
      "below has all uses\">{}</svg>\n<table class=\"plain uses\"><thead><tr><th>Use</th><th>Meaning</th>"
      "<th class=\"num\">Time</th><th class=\"num\">Share</th></tr></thead><tbody>\n{}</tbody></table>\n",
      Percent(GoodputOf(spent).value_or(0)), bar, rows);
}

}  // namespace muster::agent

// SPDX-License-Identifier: Apache-2.0
#include "agent/page/timeline_plot.h"

#include <algorithm>
#include <array>
#include <set>

#include "agent/report/report_text.h"
#include "base/text.h"

namespace muster::agent {
namespace {

constexpr int kRowHeight = 20;  // CSS: .labels div
constexpr int kBarHeight = 12;
constexpr int kAxisHeight = 24;
constexpr size_t kWidest = 3000;  // pixels

// CSS class and meaning, by BarKind.
struct Kind {
  std::string_view css, meaning;
};
constexpr std::array<Kind, 7> kKinds = {{{"ok", "succeeded"},
                                         {"stopped", "stopped because of another"},
                                         {"open", "no end recorded"},
                                         {"retry", "failed, exit code 128 or more"},
                                         {"fatal", "failed, exit code below 128"},
                                         {"run", "job: all workers run"},
                                         {"lost", "job: time lost"}}};
const Kind& KindOf(const PlotBar& bar) { return kKinds[static_cast<size_t>(bar.kind)]; }

// Times as percentages of the axis.
class Axis {
 public:
  Axis(int64_t from, int64_t to) : from_(from), span_(std::max<int64_t>(to - from, 1)) {}
  int64_t span() const { return span_; }
  double At(int64_t moment) const { return Share(moment - from_); }
  double Share(int64_t millis) const {
    return 100.0 * static_cast<double>(std::clamp<int64_t>(millis, 0, span_)) / static_cast<double>(span_);
  }

 private:
  int64_t from_;
  int64_t span_;
};

std::string AxisSvg(const Axis& axis) {
  std::string svg = fmt::format("<svg class=\"axis\" width=\"100%\" height=\"{}\" aria-hidden=\"true\">", kAxisHeight);
  for (int64_t tick : AxisTicks(axis.span(), 5)) {
    double at = axis.Share(tick);
    std::string_view anchor = tick == 0 ? "start" : at > 90 ? "end" : "middle";
    svg += fmt::format("<text x=\"{:.3g}%\" y=\"15\" text-anchor=\"{}\">{}</text>", at, anchor, FormatTick(tick));
  }
  return svg + "</svg>";
}

std::string BarSvg(const Axis& axis, const PlotBar& bar, int top) {
  const double from = axis.At(bar.from), to = axis.At(bar.to);
  const std::string_view css = KindOf(bar).css;
  std::string svg = fmt::format(
      "<rect class=\"{}\" x=\"{:.3f}%\" y=\"{}\" width=\"{:.3f}%\" height=\"{}\" rx=\"2\"><title>{}</title></rect>\n",
      css, from, top + (kRowHeight - kBarHeight) / 2, std::max(0.0, to - from), kBarHeight, EscapeHtml(bar.title));
  // At the end of its bar, or over a short bar.
  if (bar.crossed) {
    const bool is_long = to - from > 3;
    svg += fmt::format("<text class=\"cross {}\" x=\"{:.3f}%\" y=\"{}\" dx=\"{}\">\u00D7</text>", css,
                       is_long ? to : (from + to) / 2, top + 15, is_long ? -7 : 0);
  }
  return svg;
}

std::string LabelHtml(const PlotRow& row) {
  std::string text = EscapeHtml(row.label);
  return fmt::format("<div{0} title=\"{1}\">{1}</div>", row.is_node ? " class=\"node\"" : "", text);
}

std::string Legend(const TimelinePlot& plot) {
  constexpr BarKind kOrder[] = {BarKind::kSucceeded,   BarKind::kRetryable, BarKind::kFatal, BarKind::kStopped,
                                BarKind::kNotRecorded, BarKind::kRunning,   BarKind::kLost};
  std::set<BarKind> seen;
  bool crossed = false;
  for (const PlotRow& row : plot.rows) {
    for (const PlotBar& bar : row.bars) {
      if (bar.to > bar.from || bar.kind != BarKind::kLost) seen.insert(bar.kind);
      crossed |= bar.crossed;
    }
  }
  std::string html = "<ul class=\"legend\">";
  for (const BarKind kind : kOrder) {
    const Kind& k = kKinds[static_cast<size_t>(kind)];
    if (seen.contains(kind)) html += fmt::format("<li><i class=\"key {}\"></i>{}</li>", k.css, k.meaning);
  }
  if (crossed) html += fmt::format("<li><b class=\"cross\">\u00D7</b>{}</li>", EscapeHtml(plot.crossed));
  return html + "</ul>";
}

}  // namespace

std::string TimelineHtml(const TimelinePlot& plot) {
  const Axis axis(plot.from, plot.to);
  const int height = kRowHeight * static_cast<int>(plot.rows.size());
  std::string labels, bars, grid;
  for (const int64_t tick : AxisTicks(axis.span(), 5)) {
    grid += fmt::format("<line class=\"grid\" x1=\"{0:.3f}%\" x2=\"{0:.3f}%\" y1=\"0\" y2=\"{1}\"/>", axis.Share(tick),
                        height);
  }
  int top = 0;
  for (const PlotRow& row : plot.rows) {
    labels += LabelHtml(row);
    for (const PlotBar& bar : row.bars) bars += BarSvg(axis, bar, top);
    top += kRowHeight;
  }
  // A minimum width needs no style attribute, which the page's policy forbids: an empty drawing is as wide.
  return fmt::format(
      "<div class=\"scroll\" tabindex=\"0\" role=\"region\" aria-label=\"{}\">\n<div class=\"plot\"><div "
      "class=\"corner\">time"
      "</div>{}<div class=\"labels\">{}</div>\n<div><svg class=\"bars\" width=\"100%\" height=\"{}\" role=\"img\" "
      "aria-label=\"{}\">{}\n{}</svg><svg width=\"{}\" height=\"1\" "
      "aria-hidden=\"true\"></svg></div></div></div>\n{}\n",
      EscapeHtml(plot.name), AxisSvg(axis), labels, height, EscapeHtml(plot.description), grid, bars,
      std::min(14 * plot.columns, kWidest), Legend(plot));
}

}  // namespace muster::agent

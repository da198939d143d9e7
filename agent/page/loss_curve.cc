// SPDX-License-Identifier: Apache-2.0
#include "agent/page/loss_curve.h"

#include <algorithm>
#include <cmath>

#include "agent/report/report_text.h"
#include "base/text.h"

namespace muster::agent {
namespace {

using rendezvous::CurvePoint;

constexpr double kWide = 1000, kHigh = 200;  // of the viewBox
constexpr size_t kMostLines = 16;
constexpr size_t kTableRows = 24;

// 1, 2 or 5 times a power of ten, so that about three steps cover `span`.
double NiceStep(double span) {
  const double power = std::pow(10.0, std::floor(std::log10(span / 3)));
  const double mantissa = span / 3 / power;
  return power * (mantissa < 1.5 ? 1 : mantissa < 3.5 ? 2 : mantissa < 7.5 ? 5 : 10);
}

// From `low` to `high` in `steps` equal steps.
struct Scale {
  double low = 0, high = 1;
  int steps = 1;
  double At(double value) const { return std::clamp((value - low) / (high - low), 0.0, 1.0); }
};

Scale NiceScale(double least, double most) {
  const double span = most - least;
  if (!(span > 0) || !std::isfinite(span)) {
    const double room = std::max(1e-9, std::abs(least) * 0.1);
    return {least - room, std::max(most, least) + room, 2};
  }
  const double step = NiceStep(span);
  const double low = std::floor(least / step) * step;
  const double high = std::ceil(most / step) * step;
  return {low, high, std::clamp(static_cast<int>(std::lround((high - low) / step)), 1, 12)};
}

std::string Path(const std::vector<CurvePoint>& points, const Scale& x, const Scale& y) {
  std::string path;
  for (const CurvePoint& point : points) {
    path += fmt::format("{}{:.0f} {:.1f}", path.empty() ? "M" : "L", kWide * x.At(point.position),
                        kHigh * (1 - y.At(point.loss)));
  }
  return path;
}

std::string Described(const std::vector<CurvePoint>& points, bool in_epochs) {
  const auto least =
      std::min_element(points.begin(), points.end(), [](const auto& a, const auto& b) { return a.loss < b.loss; });
  const auto told = [&](const CurvePoint& point) {
    return fmt::format("{} at {} {}", FormatLoss(point.loss), in_epochs ? "epoch" : "step",
                       FormatPosition(point.position, in_epochs));
  };
  return fmt::format("First {}, lowest {}, last {}.", told(points.front()), told(*least), told(points.back()));
}

std::string Table(const std::vector<CurvePoint>& points, bool in_epochs) {
  std::string html = fmt::format(
      "<details><summary>As a table</summary><table class=\"plain\"><thead><tr><th class=\"num\">{}</th>"
      "<th class=\"num\">Loss</th></tr></thead><tbody>\n",
      in_epochs ? "Epoch" : "Step");
  const size_t rows = std::min(points.size(), kTableRows);
  for (size_t row = 0; row < rows; ++row) {
    const CurvePoint& point = points[rows < 2 ? 0 : row * (points.size() - 1) / (rows - 1)];
    html += fmt::format("<tr><td class=\"num\">{}</td><td class=\"num\">{}</td></tr>\n",
                        FormatPosition(point.position, in_epochs), FormatLoss(point.loss));
  }
  return html + "</tbody></table></details>\n";
}

}  // namespace

std::string LossCurve(std::span<const CurveLine> all, bool in_epochs) {
  std::vector<const CurveLine*> lines;
  for (const CurveLine& line : all) {
    if (line.points.size() > 1) lines.push_back(&line);
  }
  if (lines.empty()) return "";
  if (lines.size() > kMostLines) lines.erase(lines.begin(), lines.end() - kMostLines);
  CurvePoint least = lines.front()->points.front(), most = least;
  for (const CurveLine* line : lines) {
    for (const CurvePoint& point : line->points) {
      least = {std::min(least.position, point.position), std::min(least.loss, point.loss)};
      most = {std::max(most.position, point.position), std::max(most.loss, point.loss)};
    }
  }
  const Scale x{least.position, std::max(most.position, least.position + 1e-9), 1};
  const Scale y = NiceScale(least.loss, most.loss);
  const std::vector<CurvePoint>& newest = lines.back()->points;
  std::string labels, grid, paths;
  for (int tick = 0; tick <= y.steps; ++tick) {
    labels += fmt::format("<span>{}</span>", FormatLoss(y.high - (y.high - y.low) * tick / y.steps));
    const double at = kHigh * tick / y.steps;
    grid += fmt::format("<line x1=\"0\" x2=\"1000\" y1=\"{0:.1f}\" y2=\"{0:.1f}\"/>", at);
  }
  for (const CurveLine* line : lines) {
    paths += fmt::format("<path{} d=\"{}\"><title>{}</title></path>\n", line == lines.back() ? "" : " class=\"before\"",
                         Path(line->points, x, y), EscapeHtml(line->name));
  }
  const std::string_view unit = in_epochs ? "epoch" : "step";
  std::string html = fmt::format(
      "<figure class=\"chart\"><div class=\"ys\" aria-hidden=\"true\">{}</div>\n"
      "<svg viewBox=\"0 0 1000 200\" preserveAspectRatio=\"none\" role=\"img\" aria-label=\"Loss by {}. {}\">{}\n{}"
      "</svg><div class=\"xs\" aria-hidden=\"true\"><span>{} {}</span><span>{}</span></div></figure>\n",
      labels, unit, Described(newest, in_epochs), grid, paths, unit, FormatPosition(x.low, in_epochs),
      FormatPosition(x.high, in_epochs));
  html += fmt::format("<p class=\"muted\">{}{}</p>\n", Described(newest, in_epochs),
                      lines.size() > 1 ? " Dashed: the attempts before." : "");
  return html + Table(newest, in_epochs);
}

}  // namespace muster::agent

// SPDX-License-Identifier: Apache-2.0
#include "agent/page/heat_map.h"

#include <algorithm>
#include <array>

#include "agent/report/report_text.h"
#include "base/text.h"

namespace muster::agent {
namespace {

constexpr size_t kMostColumns = 64;
constexpr int kCellPixels = 14;
constexpr size_t kSlowestListed = 8;

struct Shade {
  double below;  // times the median
  std::string_view text;
};
constexpr std::array<Shade, 5> kShades = {{{1.05, "up to 1.05 times the median"},
                                           {1.1, "to 1.1 times"},
                                           {1.25, "to 1.25 times"},
                                           {1.5, "to 1.5 times"},
                                           {1e300, "above 1.5 times"}}};
constexpr size_t kNoShade = kShades.size();

size_t ShadeOf(const HeatCell& cell, double median) {
  if (!cell.seconds) return kNoShade;
  size_t shade = 0;
  while (shade + 1 < kShades.size() && *cell.seconds >= kShades[shade].below * median) ++shade;
  return shade;
}

// Cells with a step time, the slowest first.
std::vector<const HeatCell*> BySeconds(std::span<const HeatCell> cells) {
  std::vector<std::pair<double, int>> order;
  for (size_t at = 0; at < cells.size(); ++at) {
    if (cells[at].seconds) order.emplace_back(-*cells[at].seconds, static_cast<int>(at));
  }
  std::sort(order.begin(), order.end());
  std::vector<const HeatCell*> known;
  for (const auto& [seconds, at] : order) known.push_back(&cells[static_cast<size_t>(at)]);
  return known;
}

size_t ColumnsFor(size_t cells, int slots) {
  const auto node = static_cast<size_t>(std::max(slots, 1));
  const size_t most = std::min(kMostColumns, cells <= 128 ? size_t{16} : cells <= 512 ? size_t{32} : kMostColumns);
  return node > most ? std::min(most, cells) : std::min(most / node * node, cells);
}

// A path for each shade: equal neighbours are one stroke, as wide as a cell.
std::string Cells(std::span<const HeatCell> cells, size_t columns, double median) {
  std::array<std::string, kShades.size() + 1> paths;
  for (size_t at = 0; at < cells.size();) {
    const size_t shade = ShadeOf(cells[at], median);
    const size_t row_end = std::min(cells.size(), (at / columns + 1) * columns);
    size_t end = at + 1;
    while (end < row_end && ShadeOf(cells[end], median) == shade) ++end;
    paths[shade] += fmt::format("M{} {}.5h{}", at % columns, at / columns, end - at);
    at = end;
  }
  std::string svg;
  for (size_t shade = 0; shade < paths.size(); ++shade) {
    if (paths[shade].empty()) continue;
    svg += fmt::format("<path class=\"{}\" d=\"{}\"/>", shade == kNoShade ? "none" : fmt::format("h{}", shade),
                       paths[shade]);
  }
  return svg;
}

std::string Lattice(size_t columns, size_t rows) {
  std::string path;
  for (size_t column = 1; column < columns; ++column) path += fmt::format("M{} 0v{}", column, rows);
  for (size_t row = 1; row < rows; ++row) path += fmt::format("M0 {}h{}", row, columns);
  return fmt::format("<path class=\"lattice\" d=\"{}\"/>", path);
}

std::string Legend(std::span<const HeatCell> cells, double median) {
  std::array<bool, kShades.size()> seen{};
  for (const HeatCell& cell : cells) {
    if (const size_t shade = ShadeOf(cell, median); shade < seen.size()) seen[shade] = true;
  }
  std::string html = "<ul class=\"legend\">";
  for (size_t shade = 0; shade < seen.size(); ++shade) {
    if (seen[shade]) html += fmt::format("<li><i class=\"key h{}\"></i>{}</li>", shade, kShades[shade].text);
  }
  return html + "</ul>\n";
}

std::string SlowestTable(const std::vector<const HeatCell*>& known) {
  std::string html =
      "<details><summary>The slowest as a table</summary><table class=\"plain\"><thead><tr><th>Rank</th><th>Node</th>"
      "<th class=\"num\">Step</th></tr></thead><tbody>\n";
  for (size_t at = 0; at < std::min(known.size(), kSlowestListed); ++at) {
    html += fmt::format("<tr><th scope=\"row\">{}</th><td>{}</td><td class=\"num\">{}</td></tr>\n", known[at]->rank,
                        EscapeHtml(known[at]->node), FormatSeconds(*known[at]->seconds));
  }
  return html + "</tbody></table></details>\n";
}

}  // namespace

std::string HeatMapHtml(const HeatMap& map, size_t most) {
  const std::span<const HeatCell> cells = std::span(map.cells).first(std::min(map.cells.size(), most));
  const std::vector<const HeatCell*> known = BySeconds(cells);
  if (known.empty()) return "";
  const double median = *known[known.size() / 2]->seconds;
  const size_t columns = ColumnsFor(cells.size(), map.slots);
  const size_t rows = (cells.size() + columns - 1) / columns;
  std::string mark;
  for (size_t at = 0; at < cells.size(); ++at) {
    if (map.slow != cells[at].rank) continue;
    mark = fmt::format("<path class=\"mark\" d=\"M{} {}h1v1h-1z\"/>", at % columns, at / columns);
  }
  const std::string described =
      fmt::format("The median step takes {}, the slowest {} (rank {}), the fastest {} (rank {}).",
                  FormatSeconds(median), FormatSeconds(*known.front()->seconds), known.front()->rank,
                  FormatSeconds(*known.back()->seconds), known.back()->rank);
  std::string html =
      fmt::format("<p>{}</p>\n<p class=\"muted\">{} One cell a rank, {} a row.",
                  EscapeHtml(map.evidence.empty() ? "No rank stands out." : map.evidence), described, columns);
  if (cells.size() < map.cells.size()) {
    html += fmt::format(" {} left out.", Counted(static_cast<int64_t>(map.cells.size() - cells.size()), "rank"));
  }
  html += fmt::format(
      "</p>\n<svg class=\"heat\" viewBox=\"0 0 {0} {1}\" width=\"{2}\" height=\"{3}\" role=\"img\" "
      "aria-label=\"Step times of {4}. {5}\">{6}{7}{8}</svg>\n",
      columns, rows, columns * kCellPixels, rows * kCellPixels, Counted(static_cast<int64_t>(cells.size()), "rank"),
      described, Cells(cells, columns, median), Lattice(columns, rows), mark);
  return html + Legend(cells, median) + SlowestTable(known);
}

}  // namespace muster::agent

// SPDX-License-Identifier: Apache-2.0
#include "agent/live/top_frame.h"

#include <algorithm>

#include "agent/live/top_head.h"
#include "agent/live/top_pages.h"
#include "agent/live/top_table.h"
#include "base/text.h"

namespace muster::agent {
namespace {

constexpr Style kFaint{.ink = Ink::kDim};
constexpr Style kKey{.bold = true};
constexpr size_t kRowsOfPlainHead = 40;

struct Hint {
  std::string_view key, does;
};
constexpr Hint kTableKeys[] = {{"s", "sort"},   {"/", "filter"}, {"n", "nodes"}, {"Enter", "details"},
                               {"k", "stacks"}, {"p", "pause"},  {"?", "help"},  {"q", "quit"}};
constexpr Hint kPageKeys[] = {{"Esc", "back"}, {"PgDn", "more"}, {"p", "pause"}, {"Ctrl-C", "quit"}};

// The hints that fit.
template <size_t Count>
void AddHints(const Hint (&hints)[Count], Line* line) {
  for (const Hint& hint : hints) {
    if (line->room() < hint.key.size() + hint.does.size() + 3) continue;
    line->Add(hint.key, kKey).Add(" ").Add(hint.does, kFaint).Add("  ");
  }
}

Line KeysLine(const TopState& state, size_t rows, size_t height, Size size) {
  Line line(size.columns);
  if (state.typing) {
    line.Add("filter: ", kKey).Add(state.choice.filter).Add("_  ");
    return std::move(line.Add("Enter keeps it, Esc drops it", kFaint));
  }
  if (rows > height) line.Add(fmt::format("{}-{} of {}  ", state.top + 1, std::min(state.top + height, rows), rows));
  if (!state.choice.filter.empty()) {
    line.Add(fmt::format("only '{}'", state.choice.filter), {.ink = Ink::kYellow}).Add("  ");
  }
  const bool by_rank = state.choice.sort == TopSort::kRank && !state.choice.reverse;
  if (!by_rank) {
    line.Add(fmt::format("by {}{}", TopSortName(state.choice.sort), state.choice.reverse ? ", reversed" : ""))
        .Add("  ");
  }
  AddHints(kTableKeys, &line);
  return line;
}

Line ReasonLine(const LiveView& view, size_t columns) {
  return std::move(Line(columns).Add(view.report.reason, kFaint));
}

void DrawTable(const LiveView& view, const TopState& state, TimePoint now, Picture* picture) {
  const Size size = picture->size;
  picture->lines = HeadLines(view, state, size, now);
  const size_t height = TableHeight(view, state, size, now);
  const std::vector<TopRow> rows = RowsOf(view, state.choice);
  const std::vector<TopColumn> table = ColumnsFor(view, rows, size.columns);
  Line titles = TitlesOf(table, state.choice, size.columns);
  titles.Select();
  picture->lines.push_back(std::move(titles));
  const size_t end = std::min(rows.size(), state.top + height);
  for (size_t at = state.top; at < end; ++at) {
    Line line = LineOf(rows[at], table, view.report.round, now - state.facts.came, size.columns);
    if (at == state.index) line.Select();
    picture->lines.push_back(std::move(line));
  }
  const size_t below = 1 + (ShowsReason(size) ? 1 : 0);
  const size_t place = size.rows > below ? size.rows - below : 0;
  picture->lines.resize(std::min(picture->lines.size(), place), Line(size.columns));
  while (picture->lines.size() < place) picture->lines.emplace_back(size.columns);
  if (ShowsReason(size)) picture->lines.push_back(ReasonLine(view, size.columns));
  picture->lines.push_back(KeysLine(state, rows.size(), height, size));
}

void DrawPage(const LiveView& view, const TopState& state, TimePoint now, Picture* picture) {
  const Size size = picture->size;
  std::vector<Line> lines = PageLines(view, state, size, now);
  const size_t height = PageHeight(size);
  const size_t first = std::min(state.scroll, lines.size() - std::min(lines.size(), height));
  const size_t end = std::min(lines.size(), first + height);
  for (size_t at = first; at < end; ++at) picture->lines.push_back(std::move(lines[at]));
  while (picture->lines.size() < height) picture->lines.emplace_back(size.columns);
  Line keys(size.columns);
  if (lines.size() > height) keys.Add(fmt::format("{}-{} of {}  ", first + 1, end, lines.size()));
  AddHints(kPageKeys, &keys);
  picture->lines.push_back(std::move(keys));
}

}  // namespace

Picture Draw(const LiveView& view, const TopState& state, Size size, TimePoint now) {
  Picture picture{.size = size, .lines = {}};
  if (size.rows == 0 || size.columns == 0) return picture;
  if (state.page == TopPage::kTable) {
    DrawTable(view, state, now, &picture);
  } else {
    DrawPage(view, state, now, &picture);
  }
  picture.lines.resize(std::min(picture.lines.size(), size.rows), Line(size.columns));
  return picture;
}

std::string PlainTable(const LiveView& view, const TopState& state, size_t columns, TimePoint now) {
  std::string text;
  const auto add = [&text](const Line& line) { text += line.Text() + "\n"; };
  for (const Line& line : HeadLines(view, state, {.rows = kRowsOfPlainHead, .columns = columns}, now)) add(line);
  const std::vector<TopRow> rows = RowsOf(view, state.choice);
  const std::vector<TopColumn> table = ColumnsFor(view, rows, columns);
  if (!rows.empty()) add(TitlesOf(table, state.choice, columns));
  for (const TopRow& row : rows) add(LineOf(row, table, view.report.round, now - state.facts.came, columns));
  const bool is_said = view.report.phase == "finished";  // by the sentence in the head
  if (!view.report.reason.empty() && !is_said) add(ReasonLine(view, columns));
  return text;
}

}  // namespace muster::agent

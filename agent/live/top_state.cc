// SPDX-License-Identifier: Apache-2.0
#include "agent/live/top_state.h"

#include <algorithm>

#include "agent/live/top_head.h"
#include "agent/live/top_pages.h"
#include "base/utf8.h"

namespace muster::agent {
namespace {

constexpr size_t kLongestFilter = 256;  // bytes

enum class Move { kUp, kDown, kPageUp, kPageDown, kHome, kEnd };

std::optional<Move> MoveOf(const Key& key) {
  switch (key.kind) {
    case KeyKind::kUp:
      return Move::kUp;
    case KeyKind::kDown:
      return Move::kDown;
    case KeyKind::kPageUp:
      return Move::kPageUp;
    case KeyKind::kPageDown:
      return Move::kPageDown;
    case KeyKind::kHome:
      return Move::kHome;
    case KeyKind::kEnd:
      return Move::kEnd;
    case KeyKind::kText:
    case KeyKind::kEnter:
    case KeyKind::kEscape:
    case KeyKind::kBackspace:
    case KeyKind::kLeft:
    case KeyKind::kRight:
    case KeyKind::kClear:
    case KeyKind::kInterrupt:
    case KeyKind::kSuspend:
    case KeyKind::kRedraw:
      return std::nullopt;
  }
  return std::nullopt;
}

size_t Moved(size_t from, Move move, size_t page, size_t last) {
  page = std::max<size_t>(page, 1);
  switch (move) {
    case Move::kUp:
      return from - std::min<size_t>(from, 1);
    case Move::kDown:
      return std::min(from + 1, last);
    case Move::kPageUp:
      return from - std::min(from, page);
    case Move::kPageDown:
      return std::min(from + page, last);
    case Move::kHome:
      return 0;
    case Move::kEnd:
      return last;
  }
  return from;
}

// The first row on the screen, so that row `index` of `count` is on it.
size_t FirstShown(size_t top, size_t index, size_t count, size_t height) {
  height = std::max<size_t>(height, 1);
  if (index < top) top = index;
  if (index >= top + height) top = index - height + 1;
  return std::min(top, count - std::min(count, height));
}

void Select(size_t index, const std::vector<TopRow>& rows, size_t height, TopState* state) {
  if (rows.empty()) {
    state->index = state->top = 0;
    return;
  }
  state->index = std::min(index, rows.size() - 1);
  state->selected = rows[state->index].Name();
  state->top = FirstShown(state->top, state->index, rows.size(), height);
}

void EditFilter(const Key& key, TopState* state) {
  std::string& filter = state->choice.filter;
  switch (key.kind) {
    case KeyKind::kText:
      if (filter.size() + key.text.size() <= kLongestFilter) filter += key.text;
      return;
    case KeyKind::kBackspace:
      if (filter.empty()) state->typing = false;
      filter = std::string(Beginning(filter, filter.size() - std::min<size_t>(filter.size(), 1)));
      return;
    case KeyKind::kClear:
      filter.clear();
      return;
    case KeyKind::kEnter:
      state->typing = false;
      return;
    case KeyKind::kEscape:
      state->typing = false;
      filter = state->filter_before;
      return;
    case KeyKind::kUp:
    case KeyKind::kDown:
    case KeyKind::kLeft:
    case KeyKind::kRight:
    case KeyKind::kPageUp:
    case KeyKind::kPageDown:
    case KeyKind::kHome:
    case KeyKind::kEnd:
    case KeyKind::kInterrupt:
    case KeyKind::kSuspend:
    case KeyKind::kRedraw:
      return;
  }
}

TopWish Open(TopPage page, TopState* state) {
  state->page = page;
  state->scroll = 0;
  state->text_title.clear();
  state->text.clear();
  switch (page) {
    case TopPage::kDetails:
      return TopWish::kReadLog;
    case TopPage::kStacks:
      return TopWish::kReadStacks;
    case TopPage::kTable:
    case TopPage::kHelp:
      return TopWish::kNothing;
  }
  return TopWish::kNothing;
}

// A letter, where no filter is typed.
TopWish Command(std::string_view letter, bool has_row, TopState* state) {
  const bool in_table = state->page == TopPage::kTable;
  if (letter == "q") return in_table ? TopWish::kQuit : Open(TopPage::kTable, state);
  if (letter == "p") state->paused = !state->paused;
  if (letter == "?" || letter == "h") return Open(TopPage::kHelp, state);
  if ((letter == "k" || letter == "S") && has_row) return Open(TopPage::kStacks, state);
  if (!in_table) return TopWish::kNothing;
  if (letter == "s") {
    state->choice.sort = static_cast<TopSort>((static_cast<size_t>(state->choice.sort) + 1) % kTopSorts);
  } else if (letter == "r") {
    state->choice.reverse = !state->choice.reverse;
  } else if (letter == "n") {
    state->choice.folded = !state->choice.folded;
  } else if (letter == "/") {
    state->typing = true;
    state->filter_before = state->choice.filter;
  }
  return TopWish::kNothing;
}

TopWish Press(const Key& key, bool has_row, TopState* state) {
  switch (key.kind) {
    case KeyKind::kInterrupt:
      return TopWish::kQuit;
    case KeyKind::kSuspend:
      return TopWish::kSuspend;
    case KeyKind::kRedraw:
      return TopWish::kRedraw;
    case KeyKind::kText:
      if (!state->typing) return Command(key.text, has_row, state);
      break;
    case KeyKind::kEnter:
      if (!state->typing) {
        return state->page == TopPage::kTable && has_row ? Open(TopPage::kDetails, state) : TopWish::kNothing;
      }
      break;
    case KeyKind::kEscape:
    case KeyKind::kBackspace:
      if (state->typing) break;
      if (state->page != TopPage::kTable) return Open(TopPage::kTable, state);
      state->choice.filter.clear();
      return TopWish::kNothing;
    case KeyKind::kUp:
    case KeyKind::kDown:
    case KeyKind::kLeft:
    case KeyKind::kRight:
    case KeyKind::kPageUp:
    case KeyKind::kPageDown:
    case KeyKind::kHome:
    case KeyKind::kEnd:
    case KeyKind::kClear:
      break;
  }
  if (state->typing) EditFilter(key, state);
  return TopWish::kNothing;
}

}  // namespace

const TopRow* SelectedRow(const std::vector<TopRow>& rows, const TopState& state) {
  const auto found =
      std::find_if(rows.begin(), rows.end(), [&](const TopRow& row) { return row.Name() == state.selected; });
  return found == rows.end() ? nullptr : &*found;
}

TopState Settled(TopState state, const LiveView& view, Size size, TimePoint now) {
  const std::vector<TopRow> rows = RowsOf(view, state.choice);
  const TopRow* selected = nullptr;
  const bool held = state.held || state.page != TopPage::kTable;
  if (held) selected = SelectedRow(rows, state);
  if (held && selected == nullptr) {  // the table was folded or unfolded: a row of the same node
    const auto same = std::find_if(rows.begin(), rows.end(),
                                   [&](const TopRow& row) { return row.NodeName() == state.selected.node; });
    if (same != rows.end()) selected = &*same;
  }
  const size_t index = selected != nullptr ? static_cast<size_t>(selected - rows.data()) : held ? state.index : 0;
  Select(index, rows, TableHeight(view, state, size, now), &state);
  return state;
}

TopStep Apply(TopState state, const Key& key, const LiveView& view, Size size, TimePoint now) {
  state = Settled(std::move(state), view, size, now);
  const std::optional<Move> move = MoveOf(key);
  if (move && state.page != TopPage::kTable) {
    const size_t height = PageHeight(size);
    const size_t lines = PageLines(view, state, size, now).size();
    state.scroll = Moved(state.scroll, *move, height, lines - std::min(lines, height));
    return {std::move(state)};
  }
  const std::vector<TopRow> rows = RowsOf(view, state.choice);
  if (move) {
    const size_t height = TableHeight(view, state, size, now);
    if (!rows.empty()) Select(Moved(state.index, *move, height, rows.size() - 1), rows, height, &state);
    state.held = state.index != 0;
    return {std::move(state)};
  }
  const TopWish wish = Press(key, !rows.empty(), &state);
  return {Settled(std::move(state), view, size, now), wish};
}

}  // namespace muster::agent

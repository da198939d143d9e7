// SPDX-License-Identifier: Apache-2.0
// What `muster top` shows of the run, and how keys change it. Pure.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "agent/live/live_view.h"
#include "agent/live/terminal_frame.h"
#include "agent/live/terminal_keys.h"
#include "agent/live/top_rows.h"
#include "agent/live/top_target.h"

namespace muster::agent {

enum class TopPage {
  kTable,
  kDetails,  // of the selected row
  kStacks,   // of the selected row
  kHelp,
};

// What is known beside the view; the edge sets it.
struct TopFacts {
  TopTarget target;
  std::string name_space;                   // -n
  TimePoint came{};                         // of the view
  std::string trouble;                      // why no news comes; one sentence
  std::map<std::string, std::string> pods;  // by host name
};

struct TopState {
  TopChoice choice;
  bool typing = false;  // the filter
  std::string filter_before;
  bool paused = false;
  TopPage page = TopPage::kTable;
  size_t scroll = 0;  // lines of the page that are above the screen
  TopRowName selected;
  // The person has moved to the selected row: it stays selected wherever it goes. Else the first row is selected.
  bool held = false;
  size_t index = 0;  // of the selected row
  size_t top = 0;    // the first row on the screen
  // Of the page: the end of the log of its rank, or the stacks. The edge sets it after the Wish.
  std::string text_title;
  std::vector<std::string> text;
  TopFacts facts;
};

inline constexpr size_t kMostPageLines = 2000;

// What the edge does after a key.
enum class TopWish {
  kNothing,
  kQuit,
  kSuspend,
  kRedraw,
  kReadLog,     // of the selected row
  kReadStacks,  // of the selected row
};

struct TopStep {
  TopState state;
  TopWish wish = TopWish::kNothing;
};
TopStep Apply(TopState state, const Key& key, const LiveView& view, Size size, TimePoint now);

// The state for a new view or a new size: the same row is selected wherever it is now, or the one in its place.
TopState Settled(TopState state, const LiveView& view, Size size, TimePoint now);

// The selected row; null: there is none.
const TopRow* SelectedRow(const std::vector<TopRow>& rows, const TopState& state);

}  // namespace muster::agent

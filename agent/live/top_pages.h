// SPDX-License-Identifier: Apache-2.0
// The pages of `muster top` beside the table: all about one rank, its stacks, help. Pure.
#pragma once

#include <vector>

#include "agent/live/live_view.h"
#include "agent/live/terminal_frame.h"
#include "agent/live/top_state.h"

namespace muster::agent {

// All lines of the state's page, also those that the screen has no room for. At most kMostPageLines. Empty for the
// table.
std::vector<Line> PageLines(const LiveView& view, const TopState& state, Size size, TimePoint now);
// How many of them a screen shows.
inline size_t PageHeight(Size size) { return size.rows > 1 ? size.rows - 1 : 1; }

}  // namespace muster::agent

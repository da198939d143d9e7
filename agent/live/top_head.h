// SPDX-License-Identifier: Apache-2.0
// The upper part of the screen of `muster top`: the run in a few lines, the most important first if there is little
// room. Pure.
#pragma once

#include <vector>

#include "agent/live/live_view.h"
#include "agent/live/terminal_frame.h"
#include "agent/live/top_state.h"

namespace muster::agent {

// Title, what the run does, its progress, its time and budget, the rounds, warnings. At most half of the screen.
std::vector<Line> HeadLines(const LiveView& view, const TopState& state, Size size, TimePoint now);

// The rows of the table that have room below the head.
size_t TableHeight(const LiveView& view, const TopState& state, Size size, TimePoint now);
// Whether the screen has room for the reason of the last change.
inline bool ShowsReason(Size size) { return size.rows >= 14; }

// The rounds as a bar of `columns`, the present at its right end: a mark where a round began, in the colour of its
// cause; a pause between two rounds is dim. A report without rounds gives an empty line.
Line RoundsLine(const rendezvous::StatusReport& report, size_t columns);

}  // namespace muster::agent

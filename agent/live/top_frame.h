// SPDX-License-Identifier: Apache-2.0
// The whole screen of `muster top`, and the same as plain text. Pure; its time is that of a sort of the ranks.
#pragma once

#include <string>

#include "agent/live/live_view.h"
#include "agent/live/terminal_frame.h"
#include "agent/live/top_state.h"

namespace muster::agent {

// `state` is Settled(). Never more than size.rows lines, nor wider than size.columns, however small the screen is.
Picture Draw(const LiveView& view, const TopState& state, Size size, TimePoint now);

// The head, all rows and the reason of the last change, without colours, for a pipe. Ends with a line feed.
std::string PlainTable(const LiveView& view, const TopState& state, size_t columns, TimePoint now);

}  // namespace muster::agent

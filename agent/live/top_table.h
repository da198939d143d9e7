// SPDX-License-Identifier: Apache-2.0
// The table of `muster top`: which columns fit, and the lines of its rows. Pure.
#pragma once

#include <string_view>
#include <vector>

#include "agent/live/terminal_frame.h"
#include "agent/live/top_rows.h"

namespace muster::agent {

enum class TopField {
  kRank,
  kNode,
  kState,
  kRound,
  kHeard,
  kCpu,
  kMemory,
  kGpu,
  kGpuMemory,
  kPosition,
  kStepTime,
  kSilent,
  kLastLine,  // takes what is left
};

struct TopColumn {
  TopField field = TopField::kRank;
  size_t width = 0;
};

// In the order of the screen. A narrow one leaves out the less important columns; that of the last line needs some
// room.
std::vector<TopColumn> ColumnsFor(const LiveView& view, const std::vector<TopRow>& rows, size_t columns);

Line TitlesOf(const std::vector<TopColumn>& table, const TopChoice& choice, size_t columns);
// `round`: of the report, for a node that tells none. `age`: of the view, by which the heartbeat is older.
Line LineOf(const TopRow& row, const std::vector<TopColumn>& table, rendezvous::RoundId round, Duration age,
            size_t columns);

}  // namespace muster::agent

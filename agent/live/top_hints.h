// SPDX-License-Identifier: Apache-2.0
// Where the log and the stacks of a rank are, for the details of `muster top`. Pure.
#pragma once

#include <string>

#include "agent/live/top_rows.h"
#include "agent/live/top_state.h"

namespace muster::agent {

// A command that prints the log, or a sentence that says where it is.
std::string LogWay(const TopFacts& facts, const TopRow& row);
// The same for the stacks.
std::string StacksWay(const TopFacts& facts, const TopRow& row);

}  // namespace muster::agent

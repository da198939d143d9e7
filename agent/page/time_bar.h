// SPDX-License-Identifier: Apache-2.0
// Where the time of a run went, as one bar and as a table. Pure.
#pragma once

#include <string>

#include "base/run_facts.h"

namespace muster::agent {

// "93.4 %".
std::string Percent(double share);

// "": no time has passed.
std::string TimeBar(const TimeSpent& spent);

}  // namespace muster::agent

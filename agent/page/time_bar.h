// Where the time of a run went, as one bar and as a table. Pure.
#pragma once

#include <optional>
#include <string>

#include "agent/progress/time_ledger.h"

namespace muster::agent {

// The share that trained; nullopt: no time has passed.
std::optional<double> GoodputOf(const TimeLedger::Spent& spent);
// "93.4 %".
std::string Percent(double share);

// "": no time has passed.
std::string TimeBar(const TimeLedger::Spent& spent);

}  // namespace muster::agent

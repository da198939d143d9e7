// How long a TCP connect to a peer takes: the row `round trip` of machine_check.h. Blocks, on a loop of its own.
#pragma once

#include <vector>

#include "agent/machine_check.h"
#include "base/clock.h"
#include "net/connect.h"

namespace muster::agent {

// A row for each peer, by the deadline.
std::vector<MachineFigure> MeasurePeers(const std::vector<net::HostPort>& peers, TimePoint until);

}  // namespace muster::agent

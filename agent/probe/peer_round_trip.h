// SPDX-License-Identifier: Apache-2.0
// How long a TCP connect to a peer takes: the row `round trip` of machine_check.h. Blocks, on a loop of its own.
#pragma once

#include <vector>

#include "agent/probe/machine_check.h"
#include "base/clock.h"
#include "net/connect.h"

namespace muster::agent {

// One figure for each peer, at the deadline at the latest.
std::vector<MachineFigure> MeasurePeers(const std::vector<net::HostPort>& peers, TimePoint until);

}  // namespace muster::agent

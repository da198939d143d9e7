// SPDX-License-Identifier: Apache-2.0
// The timeline of a run: a row for each worker, grouped by node, with a bar for each attempt, coloured by its end. HTML
// with inline SVG; widths are percentages, so it fits any screen without scaling its text. Pure.
#pragma once

#include <span>
#include <string>

#include "agent/report/run_summary.h"

namespace muster::agent {

struct TimelineLimits {
  size_t worker_rows = 64;  // with more workers there is one row per node
  size_t node_rows = 256;   // with more nodes, nodes without an own failure are left out and counted
  size_t bars = 12'000;
};

// `attempts`: not empty, in order.
std::string Timeline(std::span<const AttemptSummary> attempts, const TimelineLimits& limits = {});

}  // namespace muster::agent

// The timeline of a run: a row for each worker, grouped by node, a bar for each attempt, painted by how it ended.
// HTML with inline SVG; widths are percentages, so that it fits any screen without scaling its letters. Pure.
#pragma once

#include <span>
#include <string>

#include "agent/report/run_summary.h"

namespace muster::agent {

struct TimelineLimits {
  size_t worker_rows = 64;  // with more workers there is one row a node
  size_t node_rows = 256;   // with more nodes those without a failure of their own are left out, and counted
  size_t bars = 12'000;
};

// `attempts`: not empty, in their order.
std::string Timeline(std::span<const AttemptSummary> attempts, const TimelineLimits& limits = {});

}  // namespace muster::agent

// SPDX-License-Identifier: Apache-2.0
// Rows of bars over a time axis. HTML with inline SVG; widths are percentages, so it fits any screen without scaling
// its text. Pure.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

namespace muster::agent {

enum class BarKind { kSucceeded, kStopped, kNotRecorded, kRetryable, kFatal, kRunning, kLost };

struct PlotBar {
  int64_t from = 0, to = 0;  // milliseconds
  BarKind kind = BarKind::kNotRecorded;
  bool crossed = false;  // a failure began here: the end of the bar has a cross, which is seen without colours
  std::string title;
};

struct PlotRow {
  std::string label;
  bool is_node = false;  // a heading, or a node with all its workers in one row
  std::vector<PlotBar> bars;
};

struct TimelinePlot {
  std::string name;          // of the region, for screen readers
  std::string description;   // one sentence
  int64_t from = 0, to = 0;  // of the axis, in milliseconds
  std::vector<PlotRow> rows;
  size_t columns = 1;   // attempts: the plot is at least so wide that each can be seen
  std::string crossed;  // what a cross means
};

std::string TimelineHtml(const TimelinePlot& plot);

}  // namespace muster::agent

// SPDX-License-Identifier: Apache-2.0
// The step times of all ranks as a grid of cells: one look tells whether one rank, or one node, is slower than the
// others. Pure.
#pragma once

#include <optional>
#include <span>
#include <string>
#include <vector>

namespace muster::agent {

struct HeatCell {
  int rank = 0;
  std::string node;
  std::optional<double> seconds;  // of a step; nullopt: not known
};

struct HeatMap {
  std::vector<HeatCell> cells;  // by rank
  int slots = 1;                // workers of a node, so that nodes stand below each other
  // The rank that is slower than the others, and the sentence with the evidence. Without it the text says that no rank
  // stands out.
  std::optional<int> slow;
  std::string evidence;
};

// "": no rank has told a step time. Beyond `most` cells the rest is left out and counted.
std::string HeatMapHtml(const HeatMap& map, size_t most = 4096);

}  // namespace muster::agent

// SPDX-License-Identifier: Apache-2.0
// Which nodes are slow by the figures of their node checks: pure, nodes -> sentences. No node is excluded for it.
//
//   name                  unit   a node is an outlier
//   memory, loopback      GB/s   below half of the median of the others
//   disk                  MB/s   the same
//   round trip            ms     above twice the median of the others plus 0.5 ms (to the job's endpoint)
//   loopback round trip   ms     the same
//
// A figure is compared if at least 3 nodes have it. Figures with other names are not compared. A node is compared with
// the median of the *others*, since one slow node of three would change the median of all.
// Cost: O(n log n) for each name.
#pragma once

#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "rendezvous/round.h"

namespace muster::rendezvous {

// Node name -> "memory 3.1 GB/s, the others 12.4 GB/s; disk 20 MB/s, the others 512 MB/s", for the slow nodes.
std::map<std::string, std::string> FindOutliers(const std::vector<const Node*>& nodes);

// One sentence for people: "node b-3 is slow: memory 3.1 GB/s, the others 12.4 GB/s". It names at most 4 nodes and
// counts the rest. Empty for none.
std::string DescribeOutliers(const std::map<std::string, std::string>& outliers);

// "12.4 GB/s"; without a unit if the name is not in the table.
std::string DescribeMeasure(std::string_view name, double value);

}  // namespace muster::rendezvous

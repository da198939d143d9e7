// Which nodes are slow, by what their node checks measured: pure, nodes -> sentences. Nobody is excluded by it.
//
//   name                  unit   a node is an outlier
//   memory, loopback      GB/s   below half of the median of the others
//   disk                  MB/s   the same
//   round trip            ms     above twice the median of the others plus 0.5 ms (to the job's endpoint)
//   loopback round trip   ms     the same
//
// A figure is compared where at least 3 nodes have it; other names travel along and are not compared. The median of the
// *others*: with three nodes, one of which is slow, the median of all would be pulled by it.
// Cost: O(n log n) for each name.
#pragma once

#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "rendezvous/round.h"

namespace muster::rendezvous {

// By node name: "memory 3.1 GB/s, the others 12.4 GB/s; disk 20 MB/s, the others 512 MB/s".
std::map<std::string, std::string> FindOutliers(const std::vector<const Node*>& nodes);

// One sentence for people: "node b-3 is slow: memory 3.1 GB/s, the others 12.4 GB/s"; at most 4 nodes are told, the
// rest counted. Empty for none.
std::string DescribeOutliers(const std::map<std::string, std::string>& outliers);

// "12.4 GB/s"; without a unit for a name that is not known.
std::string DescribeMeasure(std::string_view name, double value);

}  // namespace muster::rendezvous

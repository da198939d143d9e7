// SPDX-License-Identifier: Apache-2.0
#include "rendezvous/outliers.h"

#include <algorithm>
#include <utility>

#include "base/text.h"

namespace muster::rendezvous {
namespace {

constexpr size_t kFewest = 3;  // nodes: of two, either may be the slow one
constexpr size_t kTold = 4;    // nodes in the sentence
constexpr double kSlackMs = 0.5;

struct Measure {
  std::string_view name;
  std::string_view unit;
  bool more_is_better;
};
constexpr Measure kMeasures[] = {
    {"memory", "GB/s", true},    {"loopback", "GB/s", true},           {"disk", "MB/s", true},
    {"round trip", "ms", false}, {"loopback round trip", "ms", false},
};

std::string Figure(double value) {
  return value >= 100 ? fmt::format("{:.0f}", value)
         : value >= 1 ? fmt::format("{:.1f}", value)
                      : fmt::format("{:.2g}", value);
}

// The median of `sorted` without the element at `left_out`. Of two middle elements it takes the slower one: one
// extremely fast node must not make the rest look slow.
double MedianWithout(const std::vector<std::pair<double, size_t>>& sorted, size_t left_out, bool lower) {
  const size_t count = sorted.size() - 1;
  const size_t place = lower ? (count - 1) / 2 : count / 2;
  return sorted[place < left_out ? place : place + 1].first;
}

}  // namespace

std::map<std::string, std::string> FindOutliers(const std::vector<const Node*>& nodes) {
  std::map<std::string, std::string> found;
  for (const Measure& measure : kMeasures) {
    std::vector<std::pair<double, size_t>> sorted;
    for (size_t i = 0; i < nodes.size(); ++i) {
      auto value = nodes[i]->measured.find(std::string(measure.name));
      if (value != nodes[i]->measured.end()) sorted.emplace_back(value->second, i);
    }
    if (sorted.size() < kFewest) continue;
    std::sort(sorted.begin(), sorted.end());
    for (size_t place = 0; place < sorted.size(); ++place) {
      double own = sorted[place].first;
      double others = MedianWithout(sorted, place, measure.more_is_better);
      if (measure.more_is_better ? own >= others / 2 : own <= 2 * others + kSlackMs) continue;
      std::string& told = found[nodes[sorted[place].second]->name];
      told += fmt::format("{}{} {}, the others {}", told.empty() ? "" : "; ", measure.name,
                          DescribeMeasure(measure.name, own), DescribeMeasure(measure.name, others));
    }
  }
  return found;
}

std::string DescribeOutliers(const std::map<std::string, std::string>& outliers) {
  std::vector<std::string> parts;
  for (const auto& [name, what] : outliers) {
    if (parts.size() == kTold) break;
    parts.push_back(fmt::format("node {} is slow: {}", name, what));
  }
  if (outliers.size() > kTold) parts.push_back(fmt::format("{} more are slow", outliers.size() - kTold));
  return Join(parts, "; ");
}

std::string DescribeMeasure(std::string_view name, double value) {
  for (const Measure& measure : kMeasures) {
    if (measure.name == name) return fmt::format("{} {}", Figure(value), measure.unit);
  }
  return Figure(value);
}

}  // namespace muster::rendezvous

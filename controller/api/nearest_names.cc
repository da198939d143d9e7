// SPDX-License-Identifier: Apache-2.0
#include "controller/api/nearest_names.h"

#include <algorithm>
#include <numeric>
#include <utility>

namespace muster::controller {
namespace {

constexpr size_t kLongest = 256;  // bytes of a name that are compared
constexpr size_t kMostNames = 3;
constexpr size_t kLeastBeginning = 3;  // letters of a prefix

}  // namespace

size_t EditDistance(std::string_view a, std::string_view b) {
  a = a.substr(0, kLongest);
  b = b.substr(0, kLongest);
  // Rows of the table of distances between prefixes. `last` has one letter of `a` less than `row`, `before` two less.
  std::vector<size_t> before(b.size() + 1), last(b.size() + 1), row(b.size() + 1);
  std::iota(last.begin(), last.end(), size_t{0});
  for (size_t i = 1; i <= a.size(); ++i) {
    row[0] = i;
    for (size_t j = 1; j <= b.size(); ++j) {
      row[j] = std::min({last[j] + 1, row[j - 1] + 1, last[j - 1] + (a[i - 1] == b[j - 1] ? 0 : 1)});
      const bool swapped = i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1];
      if (swapped) row[j] = std::min(row[j], before[j - 2] + 1);
    }
    std::swap(before, last);
    std::swap(last, row);
  }
  return last[b.size()];
}

std::vector<std::string> NearestNames(std::string_view name, const std::vector<std::string>& names) {
  std::vector<std::pair<size_t, std::string_view>> found;
  for (const std::string& known : names) {
    const size_t distance = EditDistance(name, known);
    const bool begins = std::min(name.size(), known.size()) >= kLeastBeginning &&
                        (known.starts_with(name) || name.starts_with(std::string_view(known)));
    if (begins || distance <= std::max<size_t>(1, (std::min(name.size(), kLongest) + 1) / 3))
      found.emplace_back(distance, known);
  }
  std::stable_sort(found.begin(), found.end(), [](const auto& a, const auto& b) { return a.first < b.first; });
  std::vector<std::string> nearest;
  for (const auto& [distance, known] : found) {
    if (nearest.size() < kMostNames) nearest.emplace_back(known);
  }
  return nearest;
}

}  // namespace muster::controller

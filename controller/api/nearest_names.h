// SPDX-License-Identifier: Apache-2.0
// Finds the known names nearest to a misspelt one. Pure; untrusted input.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace muster::controller {

// The number of letters to insert, delete, change, or swap with the next one, to turn `a` into `b`. Only the first 256
// bytes of a name count.
size_t EditDistance(std::string_view a, std::string_view b);

// Those of `names` that the user may have meant by `name`, the nearest first, three at most: about a third of its
// letters differ at most, or one name is a prefix of the other, with 3 letters or more.
std::vector<std::string> NearestNames(std::string_view name, const std::vector<std::string>& names);

}  // namespace muster::controller

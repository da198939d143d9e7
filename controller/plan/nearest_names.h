// Names that a person may have meant. Pure; outside bytes.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace muster::controller {

// How many letters have to be put in, taken out, changed, or swapped with the next one, to make `b` of `a`. Names of
// more than 256 bytes are compared by their first 256.
size_t EditDistance(std::string_view a, std::string_view b);

// Those of `names` that `name` may stand for, the nearest first, three at most: a third of its letters differ, or one
// is the beginning of the other.
std::vector<std::string> NearestNames(std::string_view name, const std::vector<std::string>& names);

}  // namespace muster::controller

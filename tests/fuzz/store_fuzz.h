// Shared by the fuzz target and the unit test over its corpus.
#pragma once

#include <cstdint>
#include <string_view>

namespace muster::store {

// Runs requests of two connections on one key space. The first byte of the input gives the size of the pieces in which
// the rest arrives. Aborts if the pieces and the whole give different results, or if a bound is exceeded.
void FuzzStore(std::string_view input);

}  // namespace muster::store

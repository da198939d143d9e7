// What the fuzzer and the unit test over its corpus share.
#pragma once

#include <cstdint>
#include <string_view>

namespace muster::store {

// The input's first byte says in which pieces the rest arrives; two connections take turns at one key space. Aborts
// where pieces and whole disagree or a bound is broken.
void FuzzStore(std::string_view input);

}  // namespace muster::store

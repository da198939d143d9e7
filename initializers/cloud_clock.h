// What servers agree with us on: signatures, expirations and the dates they send are of the wall clock, the only such
// use in Muster. A clock that is off is corrected by what a server says (s3.cc), one that jumps renews keys early or
// late.
#pragma once

#include <cstdint>

#include "base/clock.h"

namespace muster::initializers {

inline int64_t UnixSeconds() { return UnixMillis() / 1000; }

}  // namespace muster::initializers

// Updates by instructions that only some CPUs have. One crc_cpu_*.cc is compiled, for the machine that is built for.
#pragma once

#include <vector>

#include "initializers/crc.h"

namespace muster::initializers {

// What this CPU can do, the fastest first; may be none.
std::vector<CrcUpdates> CpuCrcUpdates();

}  // namespace muster::initializers

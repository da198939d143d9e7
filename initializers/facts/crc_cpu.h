// SPDX-License-Identifier: Apache-2.0
// CRC updates by instructions that only some CPUs have. One crc_cpu_*.cc is compiled, by the target machine.
#pragma once

#include <vector>

#include "initializers/facts/crc.h"

namespace muster::initializers {

// The implementations that this CPU can run, the fastest first; may be empty.
std::vector<CrcUpdates> CpuCrcUpdates();

}  // namespace muster::initializers

// SPDX-License-Identifier: Apache-2.0
#include "initializers/facts/crc_cpu.h"

namespace muster::initializers {

std::vector<CrcUpdates> CpuCrcUpdates() { return {}; }

}  // namespace muster::initializers

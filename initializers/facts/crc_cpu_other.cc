#include "initializers/facts/crc_cpu.h"

namespace muster::initializers {

std::vector<CrcUpdates> CpuCrcUpdates() { return {}; }

}  // namespace muster::initializers

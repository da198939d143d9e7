// NAME.ranges of the staging folder: whatever a kill, a full disk or a stranger left in it.
#include <cstdint>
#include <cstdlib>
#include <string_view>

#include "initializers/staging.h"

using muster::initializers::ReadRangeLines;
using muster::initializers::WriteRangeLine;

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  constexpr uint64_t kSize = 1 << 20;
  uint64_t end = 0;
  std::string again;
  const auto ranges = ReadRangeLines({reinterpret_cast<const char*>(data), size}, kSize);
  for (const auto& staged : ranges) {
    if (staged.range.offset < end || staged.range.length == 0 || staged.range.end() > kSize) std::abort();
    end = staged.range.end();
    again += WriteRangeLine(staged);
  }
  if (ReadRangeLines(again, kSize) != ranges) std::abort();
  return 0;
}

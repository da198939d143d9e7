// SPDX-License-Identifier: Apache-2.0
// libFuzzer: NAME.ranges and NAME.hashes of the staging folder, whatever a kill, a full disk or another program left in
// them. Ranges survive writing and reading. Hashes do not depend on the pieces in which they are read.
#include <cstdint>
#include <cstdlib>
#include <string_view>

#include "initializers/target/staging_lines.h"

using muster::initializers::HashLines;
using muster::initializers::ReadRangeLines;
using muster::initializers::WriteRangeLine;

namespace {

void Ranges(std::string_view text) {
  constexpr uint64_t kSize = 1 << 20;
  uint64_t end = 0;
  std::string again;
  const auto ranges = ReadRangeLines(text, kSize);
  for (const auto& staged : ranges) {
    if (staged.range.offset < end || staged.range.length == 0 || staged.range.end() > kSize) std::abort();
    end = staged.range.end();
    again += WriteRangeLine(staged);
  }
  if (ReadRangeLines(again, kSize) != ranges) std::abort();
}

void Hashes(std::string_view text) {
  const auto any = [](const std::string&) { return true; };
  HashLines whole(any), pieces(any);
  whole.Add(text);
  for (size_t at = 0; at < text.size(); at += 7) pieces.Add(text.substr(at, 7));
  if (whole.cut() != pieces.cut() || std::move(whole).End() != std::move(pieces).End()) std::abort();
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  Ranges(text);
  Hashes(text);
  return 0;
}

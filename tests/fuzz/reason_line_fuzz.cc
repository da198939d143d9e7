// SPDX-License-Identifier: Apache-2.0
// libFuzzer: the stderr of a user's program: the line that explains its end, and what it tells of its peers. The seeds
// are outputs of programs; tests/base/reason_outputs_test.cc has their lines.
#include "base/reason_line.h"

#include "base/collective_timeout.h"
#include "base/peer_loss.h"
#include "base/text.h"
#include "base/utf8.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const std::string text(reinterpret_cast<const char*>(data), size);
  muster::WorkerFailure failure{.message = text};
  for (const std::string_view line : muster::Split(text, '\n')) failure.stderr_tail.emplace_back(line);
  for (size_t fresh_from : {size_t{0}, size / 2, size}) {
    const std::string line = muster::ReasonLine(text, fresh_from);
    if (line.size() > muster::kMaxReasonLine) __builtin_trap();
    if (muster::IsUtf8(text) && !muster::IsUtf8(line)) __builtin_trap();
    for (char c : line) {
      if (static_cast<unsigned char>(c) < 0x20) __builtin_trap();
    }
    failure.stderr_reason = line;
    (void)muster::LooksLikePeerLoss(failure);
  }
  failure.message.clear();
  (void)muster::FindCollectiveTimeout({failure});
  return 0;
}

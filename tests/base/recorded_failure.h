// SPDX-License-Identifier: Apache-2.0
// A worker's failure as the agent would report it, from an output of tests/fuzz/corpus/reason_line_fuzz.
#pragma once

#include <gtest/gtest.h>

#include <fstream>
#include <iterator>
#include <string>

#include "base/peer_loss.h"
#include "base/reason_line.h"
#include "base/text.h"

namespace muster {

inline WorkerFailure RecordedFailure(const std::string& name) {
  constexpr size_t kTailLines = 20;  // that the agent keeps
  std::ifstream file("tests/fuzz/corpus/reason_line_fuzz/" + name, std::ios::binary);
  const std::string text(std::istreambuf_iterator<char>(file), {});
  EXPECT_FALSE(text.empty()) << "no output " << name;
  WorkerFailure failure{.exit_code = 1, .stderr_reason = ReasonLine(text)};
  std::vector<std::string>& tail = failure.stderr_tail;
  for (const std::string_view line : Split(text, '\n')) tail.emplace_back(line);
  if (tail.size() > kTailLines) tail.erase(tail.begin(), tail.end() - kTailLines);
  failure.consequence = LooksLikePeerLoss(failure);
  return failure;
}

}  // namespace muster

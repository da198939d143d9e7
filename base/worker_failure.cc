// SPDX-License-Identifier: Apache-2.0
#include "base/worker_failure.h"

#include "base/exit_codes.h"
#include "base/reason_line.h"
#include "base/text.h"

namespace muster {

bool IsSilence(const WorkerFailure& failure) {
  return failure.rank < 0 && failure.pid == 0 && failure.exit_code == kExitHang && failure.signal == 0;
}

std::string WhoFailed(const WorkerFailure& failure) {
  if (failure.rank >= 0) return fmt::format("worker rank {}", failure.rank);
  return IsSilence(failure) ? "all workers" : "the command";
}

std::string MessageLine(const WorkerFailure& failure) {
  const std::string_view message = Strip(failure.message);
  if (HasTraceback(message)) return ReasonLine(message, message.size());
  return std::string(Strip(message.substr(0, message.find('\n'))));
}

std::string OwnLine(const WorkerFailure& failure) {
  std::string line = MessageLine(failure);
  return line.empty() ? failure.stderr_reason : line;
}

}  // namespace muster

#include "base/worker_failure.h"

#include "base/exit_codes.h"
#include "base/text.h"

namespace muster {

bool IsSilence(const WorkerFailure& failure) {
  return failure.rank < 0 && failure.pid == 0 && failure.exit_code == kExitHang && failure.signal == 0;
}

std::string WhoFailed(const WorkerFailure& failure) {
  if (failure.rank >= 0) return fmt::format("worker rank {}", failure.rank);
  return IsSilence(failure) ? "all workers" : "the command";
}

}  // namespace muster

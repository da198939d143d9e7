#include "base/worker_failure.h"

#include "base/exit_codes.h"
#include "base/text.h"

namespace muster {

std::string WhoFailed(const WorkerFailure& failure) {
  if (failure.rank >= 0) return fmt::format("worker rank {}", failure.rank);
  return failure.exit_code == kExitHang && failure.signal == 0 ? "all workers" : "the command";
}

}  // namespace muster

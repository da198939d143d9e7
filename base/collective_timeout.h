// SPDX-License-Identifier: Apache-2.0
// What the last words of workers say of a collective operation that did not end in its time. If no worker failed by
// itself, this is the cause: the job hung. Pure.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "base/worker_failure.h"

namespace muster {

struct CollectiveTimeout {
  std::string operation;  // "ALLREDUCE", "monitoredBarrier"; "": the words do not name it
  std::string missing;    // "rank 1", "ranks 4, 5": did not join the operation; "": the words do not name them
  bool operator==(const CollectiveTimeout&) const = default;
};

// In the words of PyTorch (NCCL's watchdog and its report of the ranks' states, gloo, the c10d store) and JAX. nullopt:
// no line tells of a timeout. Reads the line that explains each failure, and its last lines of stderr.
std::optional<CollectiveTimeout> FindCollectiveTimeout(const std::vector<WorkerFailure>& failures);

}  // namespace muster

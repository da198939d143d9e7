// SPDX-License-Identifier: Apache-2.0
// Whether a worker's last words say that another worker is gone. One table for all that has to tell a cause from its
// consequences: the line that explains an end (reason_line.h), and the failure that the job is ended for. Pure.
#pragma once

#include <string_view>

#include "base/worker_failure.h"

namespace muster {

// Whether the line says that a peer went away or never answered, in the words of gloo, NCCL, the c10d store, UCX, MPI,
// Horovod, TensorFlow, JAX or XGBoost. Generic network errors count only on a line that names one of them.
bool ReportsLostPeer(std::string_view line);

// Whether the failure is likely a consequence of another worker's end. The line that explains it decides (OwnLine).
// The other lines count if that line is not an error by itself, or comes from a communication library, whose errors
// have their cause in the lines below.
bool LooksLikePeerLoss(const WorkerFailure& failure);

}  // namespace muster

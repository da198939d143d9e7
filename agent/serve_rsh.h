// SPDX-License-Identifier: Apache-2.0
// `muster exec --serve-rsh`: a worker pod of an MPI job. Runs the commands of the launcher's remote shell and ends with
// its verdict. Has the duties of a container's main process: orphans, signals, grace.
#pragma once

#include "agent/workers/run_options.h"

namespace muster::agent {

// Returns the exit code (0..255): the verdict's, or 128 + the signal that told this process to end. Blocks.
int ServeRsh(const RunOptions& options);

}  // namespace muster::agent

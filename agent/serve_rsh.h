// `muster exec --serve-rsh`: a worker pod of an MPI job. Runs what the launcher's remote shell asks for, and ends with
// the launcher's verdict. Does the duties of a main process meanwhile: orphans, signals, grace.
#pragma once

#include "agent/torch/run_options.h"

namespace muster::agent {

// Gives the exit code (0..255): the verdict's, or 128 + the signal that told us to go. Blocks.
int ServeRsh(const RunOptions& options);

}  // namespace muster::agent

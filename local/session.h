// SPDX-License-Identifier: Apache-2.0
// One `muster local`: plans the job, runs it, and reports its end.
#pragma once

#include "base/status.h"
#include "local/flags.h"

namespace muster::local {

// Blocks until the job has ended, or, with --detach, until it runs in the background. The exit code of the process. An
// error names the file, flag or field, and what to do; then no pod has run, unless it says so.
StatusOr<int> RunLocally(const LocalFlags& flags);

}  // namespace muster::local

// The command line of a `muster exec` whose command is not wired as torch: one process or, for XGBoost, a few, as the
// user wrote them. Pure.
#pragma once

#include "agent/flag_reader.h"
#include "base/status.h"

namespace muster::agent {

// `flags` must be plain(). InvalidArgument names the flag or variable and its value.
StatusOr<RunOptions> ReadPlain(const FlagReader& flags, const Getenv& getenv);

}  // namespace muster::agent

// SPDX-License-Identifier: Apache-2.0
// The command line of a `muster exec` that is not wired as torch: one process (XGBoost: several), as written. Pure.
//
// With several nodes of jax or xgboost the pods' agents meet at node 0's host: a fixed number of nodes, ranks from
// outside. The framework's coordinator has its own port there, so the rendezvous takes another one.
#pragma once

#include "agent/flags/flag_reader.h"
#include "base/host_facts.h"
#include "base/status.h"

namespace muster::agent {

// `flags` must be plain(). InvalidArgument names the flag or variable and its value.
StatusOr<RunOptions> ReadPlain(const FlagReader& flags, const Environment& environment, const HostFacts& facts);

}  // namespace muster::agent

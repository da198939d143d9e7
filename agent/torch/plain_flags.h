// The command line of a `muster exec` whose command is not wired as torch: one process or, for XGBoost, a few, as the
// user wrote them. Pure.
//
// Wired as jax or xgboost, and told of several nodes, their agents meet: a fixed number of nodes with ranks given from
// outside, at node 0's host. The framework's coordinator has its own port there, so the rendezvous takes another.
#pragma once

#include "agent/torch/flag_reader.h"
#include "base/host_facts.h"
#include "base/status.h"

namespace muster::agent {

// `flags` must be plain(). InvalidArgument names the flag or variable and its value.
StatusOr<RunOptions> ReadPlain(const FlagReader& flags, const Environment& environment, const HostFacts& facts);

}  // namespace muster::agent

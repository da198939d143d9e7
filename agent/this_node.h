// SPDX-License-Identifier: Apache-2.0
// How this node introduces itself to a coordinator.
#pragma once

#include "agent/workers/run_options.h"
#include "rendezvous/round.h"

namespace muster::agent {

// Everything that is known before the node has a place in the rendezvous. The name is the user's, else "node-<rank>"
// for a static rank, else "<host>_<pid>"; the incarnation is random.
rendezvous::Node ThisNode(const RunOptions& options);

}  // namespace muster::agent

// SPDX-License-Identifier: Apache-2.0
// A worker's environment: exactly that of torchrun (_start_workers of torch's local_elastic_agent.py), plus
//
//   MUSTER_ROUND           number of the round
//   MUSTER_NODE            stable name of this node
//   MUSTER_HEARTBEAT_FILE  where the worker may write its step number; not set without a log folder
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "agent/workers/log_layout.h"
#include "agent/workers/run_options.h"
#include "base/environment.h"
#include "base/status.h"
#include "rendezvous/round.h"

namespace muster::agent {

// `agent_environment` overlaid with the worker's variables; each name appears once.
// FailedPrecondition: --virtual-local-rank and CUDA_VISIBLE_DEVICES has no entry for this local rank.
StatusOr<std::vector<std::string>> WorkerEnvironment(const Environment& agent_environment, const RunOptions& options,
                                                     const rendezvous::Assignment& assignment, int local_rank,
                                                     const AttemptPaths& paths);

// Checks the same for every worker of this node: FailedPrecondition as above.
Status CheckDevices(const Environment& agent_environment, const RunOptions::Workers& workers);

// torchrun's warning that OMP_NUM_THREADS becomes 1, since it is not set and there are several workers; else nullopt.
std::optional<std::string> OmpWarning(const Environment& agent_environment, const RunOptions& options);
// `text` as torchrun shows its warnings: between two lines of asterisks.
std::string BetweenStars(std::string_view text);

}  // namespace muster::agent

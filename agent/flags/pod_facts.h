// SPDX-License-Identifier: Apache-2.0
// A pod's place in a job, from the variables of torchrun, older runtimes and the Job controller (docs/agent.md). Pure.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "agent/flags/flag_reader.h"
#include "base/status.h"

namespace muster::agent {

// Environment::FirstOf().
std::optional<FlagValue> FirstOf(const Environment& environment, std::string_view names);
// The same, as a whole number in [lowest, highest]; InvalidArgument names variable and value.
StatusOr<std::optional<int>> FirstNumberOf(const Environment& environment, std::string_view names, int lowest,
                                           int highest);
// The host of node 0: TRAINER_NODE_0_HOSTNAME or PET_MASTER_ADDR.
std::optional<FlagValue> FirstNode(const Environment& environment);

// The name of the job that this process belongs to: MUSTER_JOB, else what the name of the first node says, which
// Trainer makes as "JOB-node-0-0.JOB", and PyTorchJobs as "JOB-master-0" or "JOB-worker-0". Empty: not known. Any text
// of at most 253 bytes.
std::string JobNameOf(const Environment& environment);

inline constexpr int kTrainerPort = 29500;  // of Kubeflow's runtimes, for every framework

// Variables for one process. A variable that is set already is among them only if it has to change.
using Variables = std::map<std::string, std::string>;

// A pod's place among the pods of JAX or XGBoost, so that their agents can meet, and the variables of the framework.
struct PodPlace {
  int nodes = 1;      // pods of the job that meet
  int node_rank = 0;  // this one, below `nodes`
  // Node 0's host, from the variables of FirstNode(), else from those of the framework; empty if the job has one node.
  std::string first_node;
  int framework_port = kTrainerPort;  // on node 0, for JAX's coordinator or XGBoost's tracker only
  int framework_ports = 1;            // so many ports from there on are used in turn, one per round
  std::vector<Variables> workers;     // the variables of this pod's processes, by local rank
  std::string warning;                // empty: none
};

// wire_jax.cc. Gives JAX_COORDINATOR_ADDRESS, JAX_NUM_PROCESSES and JAX_PROCESS_ID for jax.distributed.initialize();
// one process per node. Reads --nnodes and --node-rank, else these variables, else the variables for the number of
// nodes, this node's rank and the first node's name. Gives no variable if the job has one node. InvalidArgument: no
// number, a range of nodes (JAX has no elastic worlds), an id beyond the number, or no address in any variable.
StatusOr<PodPlace> JaxPlace(const FlagReader& flags, const Environment& environment);

// wire_xgboost.cc. Gives DMLC_TRACKER_URI, DMLC_TRACKER_PORT, DMLC_NUM_WORKER and DMLC_TASK_ID of each of the `nproc`
// processes in this pod. Kubeflow gives every pod its node rank as DMLC_TASK_ID, but counts processes in
// DMLC_NUM_WORKER: with several processes the id becomes node rank * nproc + local rank. Errors as above.
//
// If only DMLC_NUM_WORKER tells the number of nodes, it is divided by `nproc`. Kubeflow counts each pod's GPUs in it,
// used or not, so with `gpus` > 1 and no --nproc-per-node the pods do not meet, and a warning says so.
//
// The tracker takes no port that has connections in TIME_WAIT, and those of the last round are in it for a minute. So a
// tracker on node 0 gets the next of a few ports with each round.
StatusOr<PodPlace> XgboostPlace(const FlagReader& flags, const Environment& environment, int nproc, int gpus);
// Moves the tracker's port in `variables` to that of a round; does nothing if `ports` is 1.
void MoveTracker(int64_t round, int ports, Variables* variables);

}  // namespace muster::agent

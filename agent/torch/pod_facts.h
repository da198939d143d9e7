// What a pod is told of its place in a job, whatever the framework: by torchrun's variables, the older runtimes' and
// the Job controller's (docs/agent.md). Pure.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "agent/torch/flag_reader.h"
#include "base/status.h"

namespace muster::agent {

// Environment::FirstOf().
std::optional<FlagValue> FirstOf(const Environment& environment, std::string_view names);
// The same as a whole number in [lowest, highest]; InvalidArgument names variable and value.
StatusOr<std::optional<int>> FirstNumberOf(const Environment& environment, std::string_view names, int lowest,
                                           int highest);
// Where node 0 is: TRAINER_NODE_0_HOSTNAME or PET_MASTER_ADDR.
std::optional<FlagValue> FirstNode(const Environment& environment);

inline constexpr int kTrainerPort = 29500;  // of Kubeflow's runtimes, for every framework

// Variables for one process; what is set already is among them only where it has to change.
using Variables = std::map<std::string, std::string>;

// A pod's place among the pods of JAX or XGBoost: enough for the agents to meet, and for the framework's variables.
struct PodPlace {
  int nodes = 1;      // pods of the job that meet
  int node_rank = 0;  // this one, below `nodes`
  // Node 0's host, as its own variables have it, else the framework's; empty where the job has one node.
  std::string first_node;
  int framework_port = kTrainerPort;  // on node 0, of JAX's coordinator or XGBoost's tracker: nobody else's
  int framework_ports = 1;            // that many from there on, round by round
  std::vector<Variables> workers;     // what this pod's processes are told, by local rank
  std::string warning;                // empty: none
};

// wire_jax.cc: JAX_COORDINATOR_ADDRESS, JAX_NUM_PROCESSES, JAX_PROCESS_ID, for jax.distributed.initialize(); one
// process per node. Reads --nnodes and --node-rank, else those, else the number of nodes, this node's rank and the
// first node's name. No variable where the job has one node. InvalidArgument: no numbers, a range of nodes (JAX has no
// elastic worlds), an id beyond the number, or an address that nothing tells.
StatusOr<PodPlace> JaxPlace(const FlagReader& flags, const Environment& environment);

// wire_xgboost.cc: DMLC_TRACKER_URI, DMLC_TRACKER_PORT, DMLC_NUM_WORKER, DMLC_TASK_ID of each of the `nproc` processes
// in this pod. Kubeflow gives every pod its node rank as DMLC_TASK_ID but counts processes in DMLC_NUM_WORKER: with
// several processes the id becomes node rank * nproc + local rank. Errors as above.
//
// Where only DMLC_NUM_WORKER tells the number of nodes, it is that many divided by `nproc`. Kubeflow counts the GPUs of
// each pod in it whatever runs there: on `gpus` > 1 of them, and no --nproc-per-node, the pods stay apart, with a
// warning.
//
// The tracker takes no port that has connections in TIME_WAIT, as those of the last round's are for a minute: where it
// runs on node 0 it gets the next of a few ports with each round.
StatusOr<PodPlace> XgboostPlace(const FlagReader& flags, const Environment& environment, int nproc, int gpus);
// Moves the tracker's port in `variables` to that of a round; 1 port: not at all.
void MoveTracker(int64_t round, int ports, Variables* variables);

}  // namespace muster::agent

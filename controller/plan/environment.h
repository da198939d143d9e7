// What the trainer's containers are told of the job: torchrun's PET_* variables, and the same facts as TRAINER_*, the
// names that older runtimes write in their arguments. Pure.
#pragma once

#include <string>
#include <vector>

#include "base/json_fields.h"
#include "base/status.h"
#include "controller/api/runtime.h"
#include "controller/api/train_job.h"

namespace muster::controller {

// How many pods the trainer step has, and between which numbers it may have them.
struct NodeCount {
  int pods = 1;
  int least = 1, most = 1;  // the same where it is not elastic
  bool elastic = false;

  std::string Text() const;  // "4"; elastic: "1:4"
};

// spec.trainer.numNodes, else the runtime's: mlPolicy.numNodes, else maxNodes of its elasticPolicy, else 1.
// InvalidArgument: the number is beyond the elasticPolicy, or that contradicts itself.
StatusOr<NodeCount> ReadNodeCount(const TrainJob& job, const Runtime& runtime);

// elasticPolicy.maxRestarts; none: the runtime does not say it.
StatusOr<std::optional<int>> ElasticRestarts(const Runtime& runtime);

struct TorchFacts {
  std::string nodes;      // PET_NNODES
  std::string processes;  // PET_NPROC_PER_NODE
  std::string master;     // host of node 0
  std::string job_id;     // the TrainJob's UID, else its name
  bool elastic = false;   // the nodes are a range: only the c10d rendezvous takes one
};

// The names that no spec.trainer.env and no patch may have. InvalidArgument: `path` and those that are in `env`.
Status CheckReservedNames(std::string_view path, const Json& env);

// The five PET_* variables. A PET_MASTER_PORT that the container has already stays as it is.
void AddTorchVariables(const TorchFacts& facts, Json* container);
// The same, with the port of the rendezvous. TRAINER_* variables, and PET_RDZV_* of an elastic job, where the container
// has none of that name.
void AddTorchEnvironment(const TorchFacts& facts, Json* container);

// mlPolicy.torch.envInjection.targets: containers of other jobs that get the PET_* variables too. InvalidArgument: no
// such job or container; names those that exist.
Status InjectIntoTargets(const TorchFacts& facts, const Runtime& runtime, std::vector<ReplicatedJob>* jobs);

}  // namespace muster::controller

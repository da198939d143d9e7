// How many pods the trainer step has, and between which numbers it may have them. Pure.
#pragma once

#include <optional>
#include <string>

#include "base/status.h"
#include "controller/api/runtime.h"
#include "controller/api/train_job.h"

namespace muster::controller {

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

}  // namespace muster::controller

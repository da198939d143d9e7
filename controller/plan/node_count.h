// SPDX-License-Identifier: Apache-2.0
// The number of pods of the trainer step, and its bounds. Pure.
#pragma once

#include <optional>
#include <string>

#include "base/status.h"
#include "controller/api/runtime.h"
#include "controller/api/train_job.h"

namespace muster::controller {

struct NodeCount {
  int pods = 1;
  int least = 1, most = 1;  // bounds; both are `pods` unless elastic
  bool elastic = false;

  std::string Text() const;  // "4"; elastic: "1:4"
};

// spec.trainer.numNodes, else the runtime's: mlPolicy.numNodes, else maxNodes of its elasticPolicy, else 1.
// InvalidArgument: the number is 0, or outside minNodes and maxNodes, or minNodes is more than maxNodes.
StatusOr<NodeCount> ReadNodeCount(const TrainJob& job, const Runtime& runtime);

// elasticPolicy.maxRestarts; none: absent.
StatusOr<std::optional<int>> ElasticRestarts(const Runtime& runtime);

}  // namespace muster::controller

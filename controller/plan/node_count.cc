// SPDX-License-Identifier: Apache-2.0
#include "controller/plan/node_count.h"

#include <algorithm>

#include "base/text.h"
#include "controller/api/fields.h"
#include "controller/api/limits.h"

namespace muster::controller {
namespace {

// A number in elasticPolicy; none: absent.
StatusOr<std::optional<int>> ElasticNumber(const Runtime& runtime, const char* name, int least) {
  Complaints complaints;
  Fields policy(&runtime.ml_policy.policy, fmt::format("runtime '{}': spec.mlPolicy.torch", runtime.meta.name),
                &complaints);
  const std::optional<int> number = policy.Object("elasticPolicy").Int(name, least, kMostPods);
  MUSTER_RETURN_IF_ERROR(complaints.status());
  return number;
}

bool IsElastic(const Runtime& runtime) {
  return runtime.ml_policy.framework == Framework::kTorch &&
         FindField(runtime.ml_policy.policy, "elasticPolicy") != nullptr;
}

}  // namespace

std::string NodeCount::Text() const { return elastic ? fmt::format("{}:{}", least, most) : fmt::format("{}", pods); }

StatusOr<NodeCount> ReadNodeCount(const TrainJob& job, const Runtime& runtime) {
  const std::optional<int> own = job.trainer ? job.trainer->num_nodes : std::nullopt;
  NodeCount count;
  if (!IsElastic(runtime)) {
    count.pods = own.value_or(runtime.ml_policy.num_nodes.value_or(1));
    count.least = count.most = count.pods;
    if (count.pods > 0) return count;
    return absl::InvalidArgumentError(fmt::format(
        "runtime '{}': spec.mlPolicy.numNodes: 0: a job without nodes trains nothing; give the job a number in "
        "spec.trainer.numNodes",
        runtime.meta.name));
  }
  count.elastic = true;
  MUSTER_ASSIGN_OR_RETURN(const auto least, ElasticNumber(runtime, "minNodes", 1));
  MUSTER_ASSIGN_OR_RETURN(const auto most, ElasticNumber(runtime, "maxNodes", 1));
  const std::optional<int> wanted = own ? own : runtime.ml_policy.num_nodes;
  count.least = least.value_or(1);
  count.most = most.value_or(std::max(count.least, wanted.value_or(1)));
  count.pods = wanted.value_or(count.most);
  if (count.least > count.most) {
    return absl::InvalidArgumentError(
        fmt::format("runtime '{}': spec.mlPolicy.torch.elasticPolicy: minNodes {} is more than maxNodes {}",
                    runtime.meta.name, count.least, count.most));
  }
  if (count.pods < count.least || count.pods > count.most) {
    return absl::InvalidArgumentError(
        fmt::format("{}: {} is not between minNodes {} and maxNodes {} of the elasticPolicy of runtime '{}'",
                    own ? "spec.trainer.numNodes" : "spec.mlPolicy.numNodes", count.pods, count.least, count.most,
                    runtime.meta.name));
  }
  return count;
}

StatusOr<std::optional<int>> ElasticRestarts(const Runtime& runtime) {
  if (!IsElastic(runtime)) return std::optional<int>();
  return ElasticNumber(runtime, "maxRestarts", 0);
}

}  // namespace muster::controller

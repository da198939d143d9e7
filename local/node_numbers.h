// SPDX-License-Identifier: Apache-2.0
// Which pods are nodes of the training, and their numbers. Pure.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>

#include "base/json_fields.h"
#include "base/status.h"
#include "controller/plan/plan_files.h"
#include "local/drills.h"

namespace muster::local {

class NodeNumbers {
 public:
  NodeNumbers() = default;
  // `planned` has one job. Nodes are numbered in the order of the plan, and those of MPI so as in the hostfile.
  explicit NodeNumbers(const controller::PlannedFiles& planned);

  // -1: the pod is not a node of the training.
  int Of(const Json& pod) const;
  int count() const { return count_; }

  // InvalidArgument: the job has no such node or rank; names the flag and what there is. A rank is checked only if the
  // container's command is torchrun without flags of its own about the numbers.
  Status Check(const Drill& drill) const;

 private:
  std::map<std::string, int> first_;  // by the name of the Job, or of the type of replicas: the number of its first pod
  int count_ = 0;
  std::optional<int64_t> ranks_;
};

}  // namespace muster::local

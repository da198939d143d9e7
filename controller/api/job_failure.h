// SPDX-License-Identifier: Apache-2.0
// status.failures[] of a job: which container or pod failed, and why. The field is Muster's own, and the same for every
// kind of job. Pure; untrusted input.
#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <vector>

#include "base/clock.h"
#include "base/json_fields.h"

namespace muster::controller {

inline constexpr size_t kMostFailures = 10;  // in a status

struct Failure {
  WallTime time{};
  // Names: of the pod that failed, its batch/v1 Job, its cluster node. If a worker on another pod is the cause, they
  // are that pod's, and so are the ranks. A pod that is not known has its host name here, and no node.
  std::string pod, job, node;
  std::string reported_by;  // the pod that ended for the failure and told of it; empty: `pod` itself
  std::string pod_uid;      // of PyTorchJobs, whose pods reuse names: of the pod that ended; else empty
  std::string container;    // that ended
  std::optional<int> rank, node_rank;
  int exit_code = 0;   // 0: the pod had none
  std::string signal;  // "SIGKILL"; empty: none
  bool oom = false;
  std::string reason;     // of the container or the pod: Error, OOMKilled, Evicted, DeadlineExceeded ...
  std::string message;    // for people: the line that explains the end (worker_failure.h, OwnLine)
  std::string next_step;  // for people: what to do about it (controller/reconcile/next_step.h); empty: nothing
  bool counted = true;    // against the restart budget
  std::string origin;     // one key for all pods that ended for the same failure; empty: the pod's own end

  // The pod whose end this is.
  const std::string& ended_pod() const { return reported_by.empty() ? pod : reported_by; }
  bool operator==(const Failure&) const = default;
};

// The last kMostFailures, the newest last. A malformed field counts as absent. An entry that is not an object is left
// out.
std::vector<Failure> ReadFailures(const Json& status);
// Writes the last kMostFailures. Writes no field if there are none.
void WriteFailures(const std::vector<Failure>& failures, Json* status);

}  // namespace muster::controller

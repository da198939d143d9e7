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
  std::string pod, job, node;  // names: of the pod, its batch/v1 Job, its cluster node
  std::string pod_uid;         // of PyTorchJobs, whose pods reuse names; else empty
  std::string container;
  std::optional<int> rank, node_rank;
  int exit_code = 0;
  std::string signal;  // "SIGKILL"; empty: none
  bool oom = false;
  std::string reason;   // of the container or the pod: Error, OOMKilled, Evicted, DeadlineExceeded ...
  std::string message;  // for people: the worker's exception, or the tail of its output
  bool counted = true;  // against the restart budget
  std::string origin;   // of PyTorchJobs: one key for all pods that ended for the same failure; else empty
  bool operator==(const Failure&) const = default;
};

// The last kMostFailures, the newest last. A malformed field counts as absent. An entry that is no object is left out.
std::vector<Failure> ReadFailures(const Json& status);
// Writes the last kMostFailures. Writes no field if there are none.
void WriteFailures(const std::vector<Failure>& failures, Json* status);

}  // namespace muster::controller

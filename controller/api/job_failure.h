// status.failures[] of a job: what died, and why. Muster's own field, the same for every kind of job. Pure; outside
// bytes.
#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <vector>

#include "base/clock.h"
#include "base/json_fields.h"

namespace muster::controller {

inline constexpr size_t kMostFailures = 10;  // that a status keeps, the newest last

struct Failure {
  WallTime time{};
  std::string pod, job, node;  // names; node: of the cluster; job: of the batch/v1 Job
  std::string pod_uid;         // where names of pods are used again; else empty
  std::string container;
  std::optional<int> rank, node_rank;
  int exit_code = 0;
  std::string signal;  // "SIGKILL"; empty: none
  bool oom = false;
  std::string reason;   // Error, OOMKilled, Evicted, DeadlineExceeded ...: of the container or the pod
  std::string message;  // for people: the worker's exception, or the tail of what it wrote
  bool counted = true;  // against the restart budget
  std::string origin;   // where the pods go: the same for those that ended for one failure; else empty
  bool operator==(const Failure&) const = default;
};

// The newest kMostFailures of `status`. What is malformed in one counts as absent.
std::vector<Failure> ReadFailures(const Json& status);
// None: no field.
void WriteFailures(const std::vector<Failure>& failures, Json* status);

}  // namespace muster::controller

// One pod of a Job, as far as the Job's steps need it. Pure; outside bytes.
// Source: Kubernetes 1.36, pkg/controller: job/backoff_utils.go, controller_utils.go (ActivePods).
#pragma once

#include <string>

#include "base/clock.h"
#include "base/json_fields.h"
#include "base/status.h"

namespace muster::controller {

// On a pod, with backoffLimitPerIndex: how often its index has failed before it.
inline constexpr char kIndexFailuresAnnotation[] = "batch.kubernetes.io/job-index-failure-count";
inline constexpr char kIndexIgnoredAnnotation[] = "batch.kubernetes.io/job-index-ignored-failure-count";

struct JobPod {
  const Json* object = nullptr;
  std::string name, phase;
  int index = -1;        // -1: it has none
  bool tracked = false;  // it has the finalizer: it is not in the status yet
  bool deleted = false;  // it has a deletionTimestamp
  bool ready = false;
  int restarts = 0;               // of all its containers
  int failures = 0, ignored = 0;  // of its index before it
  WallTime ended;                 // if it has ended

  bool Ended() const { return phase == "Succeeded" || phase == "Failed"; }
  bool Active() const { return !Ended() && !deleted; }
  bool Terminating() const { return !Ended() && deleted; }
};

// It points to `object`, which must outlive it.
StatusOr<JobPod> ReadJobPod(const Json& object);

// Of two active pods, where there are too many: `a` goes rather than `b`. A strict order.
bool GoesFirst(const JobPod& a, const JobPod& b);

}  // namespace muster::controller

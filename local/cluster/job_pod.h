// SPDX-License-Identifier: Apache-2.0
// The facts of one pod that the steps of its Job need. Pure; untrusted input.
// Source: Kubernetes 1.36, pkg/controller: job/backoff_utils.go, controller_utils.go (ActivePods).
#pragma once

#include <string>

#include "base/clock.h"
#include "base/json_fields.h"
#include "base/status.h"

namespace muster::local {

// Annotations of a pod of a Job with backoffLimitPerIndex: how often its index failed before this pod.
inline constexpr char kIndexFailuresAnnotation[] = "batch.kubernetes.io/job-index-failure-count";
inline constexpr char kIndexIgnoredAnnotation[] = "batch.kubernetes.io/job-index-ignored-failure-count";

struct JobPod {
  const Json* object = nullptr;
  std::string name, phase;
  int index = -1;        // -1: it has none
  bool tracked = false;  // it has the finalizer: the Job's status does not count it yet
  bool deleted = false;  // it has a deletionTimestamp
  bool ready = false;
  int restarts = 0;               // of all its containers
  int failures = 0, ignored = 0;  // of its index, before this pod
  WallTime ended;                 // if it has ended

  bool Ended() const { return phase == "Succeeded" || phase == "Failed"; }
  bool Active() const { return !Ended() && !deleted; }
  bool Terminating() const { return !Ended() && deleted; }
};

// The JobPod points to `object`, which must outlive it.
StatusOr<JobPod> ReadJobPod(const Json& object);

// Whether `a` is removed before `b` if there are too many active pods. A strict order.
bool GoesFirst(const JobPod& a, const JobPod& b);

}  // namespace muster::local

// SPDX-License-Identifier: Apache-2.0
#include "controller/reconcile/deciding.h"

#include <algorithm>

namespace muster::controller {
namespace {

bool IsOver(const ObservedPod& pod) { return pod.phase == "Succeeded" || pod.phase == "Failed"; }

}  // namespace

const ObservedEnd* DecidingEnd(const ObservedPod& pod) {
  if (pod.decides.empty()) return nullptr;
  const auto end = std::find_if(pod.ends.begin(), pod.ends.end(), [&pod](const ObservedEnd& one) {
    return !one.init && !one.started_again && one.container == pod.decides;
  });
  if (end == pod.ends.end()) return nullptr;
  const bool starts_again = end->exit_code == 0 ? pod.restarts_succeeded : pod.restarts_failed;
  return starts_again && !IsOver(pod) ? nullptr : &*end;
}

bool IsOutlasted(const ObservedPod& pod) {
  return StillRuns(pod) && !pod.running.empty() && DecidingEnd(pod) != nullptr;
}

bool HasSucceeded(const ObservedPod& pod, WallTime now) {
  if (pod.phase == "Succeeded") return true;
  const ObservedEnd* end = DecidingEnd(pod);
  // A program may end with 0 because it was told to stop.
  const bool was_stopped = pod.disrupted || pod.meta.deleted || !pod.reason.empty();
  if (end == nullptr || end->exit_code != 0 || was_stopped) return false;
  const auto until = ServingEndsAt(pod);
  return HasFailed(pod) || (until && *until <= now);
}

std::optional<WallTime> ServingEndsAt(const ObservedPod& pod) {
  const ObservedEnd* end = IsOutlasted(pod) ? DecidingEnd(pod) : nullptr;
  if (end == nullptr || end->exit_code != 0 || !end->finished) return std::nullopt;
  return *end->finished + kServingEnds;
}

void TouchOrphans(const Observed& observed, WallTime now, Steps* steps) {
  for (const ObservedPod& pod : observed.pods) {
    const OwnerReference* owner = pod.meta.Controller();
    if (!pod.tracked || !pod.meta.deleted || pod.ended_here || owner == nullptr) continue;
    const bool has_job = std::any_of(observed.jobs.begin(), observed.jobs.end(),
                                     [owner](const ObservedJob& job) { return job.meta.uid == owner->uid; });
    if (has_job) continue;
    const WallTime at = *pod.meta.deleted + kOrphanedFor;
    now < at ? steps->LookAgain(at) : EndPod(pod, "no Job", steps);
  }
}

void EndPod(const ObservedPod& pod, const std::string& container, Steps* steps) {
  if (pod.ended_here) return;
  steps->actions.push_back({Action::Kind::kEndPod, pod.meta.name, pod.meta.uid});
  steps->actions.back().container = container;
}

}  // namespace muster::controller

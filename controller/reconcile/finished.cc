#include "controller/reconcile/finished.h"

#include <algorithm>

namespace muster::controller {
// Deletes each Job that runs, but suspends one with failed pods, which so stay with their logs (the Job controller may
// fail it by its own rules). Suspending deletes running pods: one whose container has just failed is awaited.
void StopWhatRuns(const Observed& observed, WallTime now, Decision* decision) {
  decision->actions.clear();
  decision->again.reset();
  for (const ObservedJob& job : observed.jobs) {
    if (job.complete || job.failed_at || job.meta.deleted || job.suspended) continue;
    bool tells = false;
    std::optional<WallTime> fails_until;
    for (const ObservedPod& pod : observed.pods) {
      if (!pod.meta.IsControlledBy(job.meta) || pod.phase == "Succeeded") continue;
      tells = tells || pod.phase == "Failed" ||
              std::any_of(pod.ends.begin(), pod.ends.end(), [](const ObservedEnd& end) { return end.exit_code != 0; });
      if (const auto until = FailsUntil(pod, now)) fails_until = until;
    }
    if (fails_until) {
      decision->LookAgain(*fails_until);
      continue;
    }
    const Action::Kind kind = tells ? Action::Kind::kSuspendJob : Action::Kind::kDeleteJob;
    decision->actions.push_back({kind, job.meta.name, job.meta.uid});
  }
}

Decision DecideFinished(const TrainJob& job, const Observed& observed, WallTime now) {
  Decision decision;
  decision.status = job.status;
  decision.reason = "it has ended";
  StopWhatRuns(observed, now, &decision);
  if (!job.status.completion_time) return decision;
  const auto delete_after = [&](std::optional<int64_t> seconds, Action::Kind kind, const Meta& meta) {
    if (!seconds) return;
    const WallTime end = *job.status.completion_time + std::chrono::seconds(*seconds);
    if (now < end) {
      decision.LookAgain(end);
    } else {
      decision.actions.push_back({kind, meta.name, meta.uid});
    }
  };
  for (const ObservedJob& child : observed.jobs) {
    if (!child.meta.deleted) delete_after(child.ttl_seconds, Action::Kind::kDeleteJob, child.meta);
  }
  const auto ttl = job.ttl_seconds_after_finished ? job.ttl_seconds_after_finished : job.status.ttl_seconds;
  delete_after(ttl, Action::Kind::kDeleteOwner, job.meta);
  return decision;
}

}  // namespace muster::controller

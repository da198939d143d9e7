#include "controller/reconcile/finished.h"

#include <algorithm>

#include "controller/reconcile/deciding.h"
#include "controller/reconcile/progress.h"

namespace muster::controller {
namespace {

// How long the other containers of a pod are awaited after its deciding container has ended: they end within the pod's
// grace, which is not known here. Later the pod is deleted with its logs.
constexpr std::chrono::seconds kOthersEnd{90};

}  // namespace

void StopJob(const ObservedJob& job, const std::vector<const ObservedPod*>& pods, WallTime now, Steps* steps) {
  if (job.complete || job.failed_at || job.meta.deleted || job.suspended) return;
  bool tells = false;
  std::optional<WallTime> awaited;
  for (const ObservedPod* pod : pods) {
    if (pod->phase == "Succeeded") continue;
    const ObservedEnd* decides = DecidingEnd(*pod);
    tells = tells || pod->phase == "Failed" || decides != nullptr ||
            std::any_of(pod->ends.begin(), pod->ends.end(), [](const ObservedEnd& end) { return end.exit_code != 0; });
    if (const auto until = FailsUntil(*pod, now)) awaited = until;
    if (!IsOutlasted(*pod) || !decides->finished || now >= *decides->finished + kOthersEnd) continue;
    EndPod(*pod, pod->decides, steps);
    awaited = *decides->finished + kOthersEnd;
  }
  if (awaited) return steps->LookAgain(*awaited);
  const Action::Kind kind = tells ? Action::Kind::kSuspendJob : Action::Kind::kDeleteJob;
  steps->actions.push_back({kind, job.meta.name, job.meta.uid});
}

void StopWhatRuns(const Observed& observed, WallTime now, Decision* decision) {
  decision->actions.clear();
  decision->again.reset();
  const PodsByJob pods = GroupPods(observed);
  for (const ObservedJob& job : observed.jobs) StopJob(job, PodsOf(job, pods), now, decision);
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

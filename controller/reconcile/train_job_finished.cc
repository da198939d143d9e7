// SPDX-License-Identifier: Apache-2.0
#include "controller/reconcile/train_job_finished.h"

#include <algorithm>

#include "base/text.h"
#include "controller/api/reasons.h"
#include "controller/reconcile/after.h"
#include "controller/reconcile/deciding.h"
#include "controller/reconcile/failure.h"
#include "controller/reconcile/gang.h"
#include "controller/reconcile/train_job_conditions.h"
#include "controller/reconcile/train_job_progress.h"
#include "controller/reconcile/train_job_summary.h"

namespace muster::controller {
namespace {

// How long the other containers of a pod are awaited after its deciding container has ended: they end within the pod's
// grace, which is not known here. Later the pod is deleted with its logs.
constexpr std::chrono::seconds kOthersEnd{90};

constexpr std::chrono::seconds kCauseEnds{30};  // from the end of the first agent of a round to the end of the last

// The end of a container whose log goes with the pod if the pod is deleted while another container runs, or while the
// kubelet starts this one again. Null: there is none.
const ObservedEnd* EndToKeep(const ObservedPod& pod) {
  if (IsOutlasted(pod)) return DecidingEnd(pod);
  const auto end = std::find_if(pod.ends.begin(), pod.ends.end(), [&pod](const ObservedEnd& one) {
    return one.exit_code != 0 && (one.waits_to_start || (one.started_again && pod.ended_here));
  });
  return StillRuns(pod) && end != pod.ends.end() ? &*end : nullptr;
}

// When the time of the deadline began to run. nullopt: it does not run.
std::optional<WallTime> RunsSince(const TrainJob& job, const TrainJobStatus& status) {
  if (job.suspend || !job.meta.created) return std::nullopt;
  const Condition* resumed = status.Find(kSuspended);
  const WallTime since = resumed != nullptr && !resumed->status ? resumed->since : *job.meta.created;
  if (job.meta.Annotation(kAfterAnnotation).empty()) return since;
  if (!status.start_time) return std::nullopt;
  return std::max(since, *status.start_time);
}

}  // namespace

void AddCauses(const ObservedPod& pod, NamedCauses* causes) {
  for (const ObservedEnd& end : pod.ends) {
    if (end.exit_code == 0 || !end.finished || !end.message || !end.message->cause || end.message->cause->host.empty())
      continue;
    WallTime& last = (*causes)[end.message->cause->host];
    last = std::max(last, *end.finished);
  }
}

std::optional<WallTime> AwaitLog(const ObservedPod& pod, const NamedCauses& causes, WallTime now, Steps* steps) {
  if (const ObservedEnd* end = EndToKeep(pod)) {
    if (!end->finished || now >= *end->finished + kOthersEnd) return std::nullopt;
    EndPod(pod, end->container, steps);
    return *end->finished + kOthersEnd;
  }
  const auto until = FailsUntil(pod, now);
  const auto named = causes.find(HostOf(pod));
  if (named == causes.end() || !StillRuns(pod) || now >= named->second + kCauseEnds) return until;
  return std::max(until.value_or(WallTime::min()), named->second + kCauseEnds);
}

void StopJob(const ObservedJob& job, const std::vector<const ObservedPod*>& pods, WallTime now, Steps* steps) {
  if (job.complete || job.failed_at || job.meta.deleted || job.suspended) return;
  bool tells = false;
  NamedCauses causes;
  for (const ObservedPod* pod : pods) AddCauses(*pod, &causes);
  std::optional<WallTime> awaited;
  for (const ObservedPod* pod : pods) {
    if (pod->phase == "Succeeded") {
      tells = true;
      continue;
    }
    tells = tells || pod->phase == "Failed" || DecidingEnd(*pod) != nullptr ||
            std::any_of(pod->ends.begin(), pod->ends.end(), [](const ObservedEnd& end) { return end.exit_code != 0; });
    if (const auto until = AwaitLog(*pod, causes, now, steps)) awaited = until;
  }
  if (awaited) return steps->LookAgain(*awaited);
  const Action::Kind kind = tells ? Action::Kind::kSuspendJob : Action::Kind::kDeleteJob;
  steps->actions.push_back({kind, job.meta.name, job.meta.uid});
}

void StopWhatRuns(const Observed& observed, WallTime now, TrainJobDecision* decision) {
  decision->actions.clear();
  decision->again.reset();
  const PodsByJob pods = GroupPods(observed);
  for (const ObservedJob& job : observed.jobs) StopJob(job, PodsOf(job, pods), now, decision);
}

bool EndAtDeadline(const TrainJob& job, std::optional<int64_t> of_runtime, WallTime now, TrainJobDecision* decision) {
  const bool own = job.active_deadline_seconds.has_value();
  const auto seconds = own ? job.active_deadline_seconds : of_runtime;
  const auto since = RunsSince(job, decision->status);
  if (!seconds || !since) return false;
  const WallTime end = *since + std::chrono::seconds(*seconds);
  if (now < end) {
    decision->LookAgain(end);
    return false;
  }
  const char* const field = own ? "spec.activeDeadlineSeconds" : "the runtime's spec.runPolicy.activeDeadlineSeconds";
  const bool waits = decision->status.state == kWaiting;
  const std::string cause = waits ? fmt::format("it waited: {}", decision->status.message) : "";
  const std::string remedy = waits ? cause : fmt::format("raise {}", field);
  SetFailed(job, &decision->status, reason::kDeadline.reason, reason::kDeadline.message, cause, now);
  decision->status.message = fmt::format("it took longer than {}: {} s; {}", field, *seconds, remedy);
  decision->events.push_back({true, reason::kDeadline.reason, decision->status.message});
  return true;
}

TrainJobDecision DecideFinished(const TrainJob& job, const Observed& observed, WallTime now) {
  TrainJobDecision decision;
  decision.status = job.status;
  decision.reason = "it has ended";
  StopWhatRuns(observed, now, &decision);
  TouchOrphans(observed, now, &decision);
  if (!job.status.completion_time) return decision;
  if (now < *job.status.completion_time + kGangGoes) DeleteGang(job, observed.jobs, &decision);
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

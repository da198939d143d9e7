// SPDX-License-Identifier: Apache-2.0
#include "controller/reconcile/train_job_summary.h"

#include <algorithm>

#include "base/text.h"
#include "controller/api/reasons.h"
#include "controller/plan/elastic.h"
#include "controller/reconcile/deciding.h"
#include "controller/reconcile/failure.h"
#include "controller/reconcile/train_job_conditions.h"
#include "controller/reconcile/waiting.h"

namespace muster::controller {
namespace {

constexpr std::chrono::seconds kPodsSoon{2};  // after a Job's creation, by the API server's clock

// True: a Job of nodes exists.
bool CountNodes(const TrainJob& job, const std::vector<Placed>& all, TrainJobStatus* status) {
  status->nodes = status->ready_nodes = 0;
  const bool over = status->Finished();
  bool any = false;
  const bool trains =
      std::any_of(all.begin(), all.end(), [](const Placed& placed) { return placed.planned->are_nodes; });
  for (const Placed& placed : all) {
    if (trains ? !placed.planned->are_nodes : IsInitializer(*placed.planned)) continue;
    status->nodes += placed.planned->pods;
    if (placed.planned->scales) status->selector = PodSelector(job.meta.name, placed.planned->replicated_job);
    if (placed.done) {
      any = true;
      status->ready_nodes += placed.planned->pods;
      continue;
    }
    if (placed.job == nullptr) continue;
    any = true;
    if (over && !placed.complete()) continue;
    status->ready_nodes += std::min(placed.job->pods, placed.job->ready + placed.job->succeeded);
  }
  return any;
}

// True if the Job lacks pods, and the Job controller has failed to create one after the newest pod that exists.
bool IsRefused(const Placed& placed) {
  if (!placed.runs() || placed.job->refusal.empty()) return false;
  if (placed.job->active + placed.job->succeeded >= placed.job->pods) return false;
  return std::none_of(placed.pods.begin(), placed.pods.end(), [&placed](const ObservedPod* pod) {
    return pod->meta.created && *pod->meta.created > placed.job->refused_at;
  });
}

// Why the last pod of an initializer failed, while Kubernetes waits before it makes another one. Empty: it does not.
std::string LastFailure(const Placed& placed) {
  if (!IsInitializer(*placed.planned) || !placed.runs()) return "";
  const ObservedPod* last = nullptr;
  for (const ObservedPod* pod : placed.pods) {
    if (StillRuns(*pod)) return "";
    if (last == nullptr || pod->meta.created > last->meta.created) last = pod;
  }
  const auto failure = last == nullptr ? std::nullopt : FailureOf(*last, RulesOf(*last, *placed.planned));
  return failure ? fmt::format("{}; Kubernetes makes another pod", Explain(failure->failure)) : "";
}

// The first pod for which something is wrong, else the first one that waits. No message: the job waits for nothing.
Wait FirstWait(const std::vector<Placed>& all, WallTime now, std::optional<WallTime>* again) {
  Wait first;
  for (const Placed& placed : all) {
    for (const ObservedPod* pod : placed.pods) {
      if (first.message.empty() && IsOutlasted(*pod)) {
        first.message = fmt::format("pod {}: container {} has ended; still running: {}", pod->meta.name, pod->decides,
                                    Join(pod->running, ", "));
      }
      auto wait = WaitOf(*pod, now, again);
      if (wait && SaysMore(*wait, first)) first = *std::move(wait);
      if (SaysAll(first)) return first;
    }
    if (const std::string last = LastFailure(placed); first.message.empty() && !last.empty()) first.message = last;
    if (IsRefused(placed)) {
      return {reason::kFailedCreate,
              fmt::format("Job {}: its pods cannot be made: {}", placed.job->meta.name, placed.job->refusal)};
    }
  }
  return first;
}

// A pod that the step needs is missing, starts, works again or was lost. A pod whose container has just ended is not:
// the step may be about to end. nullopt in `again`: unchanged.
bool Recovers(const std::vector<Placed>& all, WallTime now, std::optional<WallTime>* again) {
  constexpr std::chrono::seconds kJobDecides{3};  // the Job controller fails a Job about a second after its pod
  for (const Placed& placed : all) {
    if (IsInitializer(*placed.planned) || !placed.runs()) continue;
    bool any_ended = false;
    for (const ObservedPod* pod : placed.pods) {
      if (IsScaledAway(*pod, *placed.planned)) continue;
      WallTime ended{};
      for (const ObservedEnd& end : pod->ends) {
        if (!end.init && !end.started_again) ended = std::max(ended, end.finished.value_or(now));
      }
      if (pod->meta.deleted) return true;
      if (pod->phase == "Failed" && !placed.planned->agent && now < ended + kJobDecides) {
        *again = *again ? std::min(**again, ended + kJobDecides) : ended + kJobDecides;
      } else if (pod->phase == "Failed" || (pod->phase != "Succeeded" && ended == WallTime{} && !pod->ready)) {
        return true;
      }
      any_ended = any_ended || ended != WallTime{} || pod->phase == "Succeeded";
    }
    if (!any_ended && std::ssize(placed.pods) < placed.job->pods) return true;
  }
  return false;
}

std::string StateOf(const TrainJob& job, const std::vector<Placed>& all, const TrainJobStatus& status, bool started,
                    bool waits, bool recovers) {
  if (job.suspend) return kSuspended;
  const bool initializing = std::any_of(all.begin(), all.end(), [](const Placed& placed) {
    return IsInitializer(*placed.planned) && !placed.complete();
  });
  if (initializing) return waits ? kWaiting : kInitializing;
  if (status.attempt > job.status.attempt)
    return kRestarting;  // decided in this pass: the old pods still count as ready
  if (started && status.ready_nodes >= status.nodes) return kRunning;
  if (waits) return kWaiting;
  if (job.status.state == kRunning && !recovers) return kRunning;
  const bool ran = job.status.state == kRunning || job.status.state == kRestarting || status.attempt > 0;
  return ran ? kRestarting : kCreated;
}

}  // namespace

std::optional<WallTime> Summarize(const TrainJob& job, const std::vector<Placed>& all, const Hold* hold, WallTime now,
                                  TrainJobStatus* status) {
  status->jobs = CountJobs(all, status->Finished(), job.suspend);
  const bool started = CountNodes(job, all, status);
  std::optional<WallTime> again;
  if (status->Finished()) return again;
  if (hold != nullptr) {
    status->state = kWaiting;
    status->reason = hold->reason;
    status->message = hold->message;
    return again;
  }
  const Wait wait = FirstWait(all, now, &again);
  status->state = StateOf(job, all, *status, started, !wait.reason.empty(), Recovers(all, now, &again));
  status->message = wait.message;
  status->reason = wait.reason;
  return again;
}

std::vector<EventText> EventsOf(const TrainJob& job, const TrainJobStatus& status, const Hold* hold) {
  if (hold != nullptr) {
    if (status.message == job.status.message) return {};
    return {{hold->warning, status.reason, status.message}};
  }
  const std::string &before = job.status.state, &after = status.state;
  std::vector<EventText> events;
  if (after == kWaiting && IsNews({status.reason, status.message}, before == after ? job.status.message : "")) {
    events.push_back({true, kWaiting, status.message});
  }
  if (before == after) return events;
  if (after == kSuspended)
    events.push_back({false, reason::kSuspended.reason, "its Jobs are suspended, their pods end"});
  if (before == kSuspended && !job.suspend) {
    events.push_back({false, reason::kResumed.reason, "its Jobs are recreated from their templates"});
  }
  if (after == kRunning) {
    events.push_back({false, kRunning, fmt::format("all {} are ready", Counted(status.nodes, "node"))});
  }
  return events;
}

std::optional<WallTime> MayWaitUntil(const TrainJob& job, const std::vector<Placed>& all, const TrainJobStatus& status,
                                     WallTime now) {
  const bool says_more = (status.state != kCreated && status.state != kInitializing) || !status.conditions.empty() ||
                         !status.failures.empty() || !status.message.empty();
  if (!job.status.state.empty() || says_more) return std::nullopt;
  WallTime begun = now;
  for (const Placed& placed : all) {
    if (placed.job == nullptr) continue;
    if (placed.job->active > 0 || placed.complete()) return std::nullopt;
    begun = std::min(begun, placed.job->meta.created.value_or(WallTime{}));
  }
  return now < begun + kPodsSoon ? std::optional(begun + kPodsSoon) : std::nullopt;
}

}  // namespace muster::controller

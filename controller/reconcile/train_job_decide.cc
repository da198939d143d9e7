// SPDX-License-Identifier: Apache-2.0
#include "controller/reconcile/train_job_decide.h"

#include <algorithm>
#include <utility>

#include "base/text.h"
#include "controller/api/reasons.h"
#include "controller/plan/elastic.h"
#include "controller/reconcile/deciding.h"
#include "controller/reconcile/failure.h"
#include "controller/reconcile/failure_rules.h"
#include "controller/reconcile/gang.h"
#include "controller/reconcile/repair.h"
#include "controller/reconcile/replacement.h"
#include "controller/reconcile/run_success.h"
#include "controller/reconcile/taken_over.h"
#include "controller/reconcile/time_account.h"
#include "controller/reconcile/train_job_conditions.h"
#include "controller/reconcile/train_job_finished.h"
#include "controller/reconcile/train_job_progress.h"
#include "controller/reconcile/train_job_summary.h"

namespace muster::controller {
namespace {

constexpr std::chrono::seconds kLastWords{60};  // how long to wait after a Job's end for what its pods report

std::string WhyOf(const std::string& job, const std::string& reason, const std::string& message,
                  const std::string& cause) {
  return cause.empty() ? fmt::format("Job {}: {}: {}", job, reason, message) : cause;
}

class Deciding {
 public:
  Deciding(const TrainJob& job, const TrainJobPlan& plan, const Observed& observed, WallTime now)
      : job_(job), plan_(plan), observed_(observed), now_(now) {
    decision_.status = job.status;
  }

  TrainJobDecision Make() {
    const bool begins = !status().start_time && !job_.suspend;
    if (begins && observed_.hold) hold_ = &*observed_.hold;
    if (begins && !observed_.hold) status().start_time = now_;
    SetSuspended(job_, &status(), now_);
    all_ = Place(plan_, observed_, status(), now_);
    RecordCompleted();
    std::vector<RankedPod> pods;
    for (const Placed& placed : all_) {
      // The pods of a suspended Job end because the user wants it so.
      if (placed.suspended() || job_.suspend) continue;
      for (const ObservedPod* pod : placed.pods) {
        const PodRules rules = RulesOf(*pod, *placed.planned);
        pods.push_back({pod, rules.node_rank});
        for (PodFailure& overcome : AllOvercomeBy(*pod, rules, observed_.agents)) {
          overcome_.push_back(std::move(overcome));
        }
        if (placed.complete() || IsScaledAway(*pod, *placed.planned)) continue;
        auto failure = FailureOf(*pod, rules);
        if (failure && failure->told) {
          told_ = std::max(told_, failure->failure.time);
        } else if (failure) {
          failures_.push_back(*std::move(failure));
        }
      }
    }
    std::vector<PodFailure*> found;
    for (auto* list : {&failures_, &overcome_}) {
      for (PodFailure& failure : *list) found.push_back(&failure);
    }
    NameCauses(pods, found);
    status().restarts = std::max(0, status().restarts - ExcuseConsequences(pods, &status().failures, &failures_));
    Record();
    Account(all_, observed_.agents, now_, &decision_);
    if (job_.suspend) {
      Suspend();
    } else if (hold_ == nullptr && !End()) {
      RemoveLeftOvers();
      Start();
      Scale();
      Repair();
      Replace();
    }
    TouchOrphans(observed_, now_, &decision_);
    if (!status().Finished()) EndServing();
    if (status().Finished()) status().ttl_seconds = plan_.ttl_seconds;
    if (const auto again = Summarize(job_, all_, hold_, now_, &status())) decision_.LookAgain(*again);
    if (awaits_ && status().state == kRestarting) status().state = job_.status.state;
    for (EventText& event : EventsOf(job_, status(), hold_)) decision_.events.push_back(std::move(event));
    if (const auto until = MayWaitUntil(job_, all_, status(), now_)) {
      decision_.status_may_wait = true;
      decision_.LookAgain(*until);
    }
    return std::move(decision_);
  }

 private:
  TrainJobStatus& status() { return decision_.status; }

  void Do(Action::Kind kind, std::string name, std::string uid = "", std::function<Json()> object = nullptr) {
    decision_.actions.push_back({kind, std::move(name), std::move(uid), std::move(object)});
  }

  void Stop() {
    decision_.status_first = true;  // the reason must be stored before pods that show it are deleted
    StopWhatRuns(observed_, now_, &decision_);
    DeleteGang(job_, observed_.jobs, &decision_);
  }

  void Event(bool warning, std::string reason, std::string message) {
    decision_.events.push_back({warning, std::move(reason), std::move(message)});
  }

  // Whether it was this pod that told of restarts in place.
  bool SaidBy(const ObservedPod& pod) const { return observed_.agents && observed_.agents->pod_uid == pod.meta.uid; }

  bool HasAgent() const {
    return std::any_of(plan_.jobs.begin(), plan_.jobs.end(), [](const PlannedJob& planned) { return planned.agent; });
  }

  // Adds new failures, and the restarts that are used up, to the status.
  void Record() {
    for (const Failure& failure : Remember(failures_, &status().failures)) {
      Event(true, failure.counted ? reason::kPodFailed : reason::kPodDisrupted, Explain(failure));
    }
    for (const Failure& failure : Remember(overcome_, &status().failures)) {
      decision_.events.push_back(RestartedInPods(failure));
    }
    base_ = status().restarts;
    if (!HasAgent()) return;
    for (const Placed& placed : all_) {
      if (!placed.planned->agent || placed.job == nullptr) continue;
      const auto left = ParseInt(placed.job->meta.Annotation(kRestartsLeftAnnotation));
      base_ = left ? plan_.max_restarts - static_cast<int>(std::clamp<int64_t>(*left, 0, plan_.max_restarts)) : 0;
      const bool said =
          std::any_of(placed.pods.begin(), placed.pods.end(), [this](const ObservedPod* pod) { return SaidBy(*pod); });
      const int used = RestartsUsed(placed.pods, failures_, plan_.max_restarts, said ? observed_.agents->restarts : 0);
      status().restarts = std::max(status().restarts, base_ + used);
    }
  }

  // Records the Jobs that count as complete though Kubernetes does not see it: their pods may vanish.
  void RecordCompleted() {
    std::vector<std::string>& known = status().completed_jobs;
    for (const Placed& placed : all_) {
      if (!placed.done || std::count(known.begin(), known.end(), placed.planned->name) > 0) continue;
      known.push_back(placed.planned->name);
      decision_.status_first = true;
      for (const ObservedPod* pod : placed.idle) {
        decision_.events.push_back(SucceededWithout(pod->meta.name));
      }
    }
  }

  // Ends containers that run beside a deciding one that has ended (deciding.h), once nothing more depends on them.
  void EndServing() {
    for (const Placed& placed : all_) {
      if (placed.done && placed.job != nullptr) StopJob(*placed.job, placed.pods, now_, &decision_);
      if (!placed.runs() || job_.suspend) continue;
      for (const ObservedPod* pod : placed.pods) {
        if (!IsOutlasted(*pod)) continue;
        const auto until = ServingEndsAt(*pod);
        if (!until) EndPod(*pod, pod->decides, &decision_);
        if (until && now_ < *until) decision_.LookAgain(*until);
      }
    }
  }

  // True if the Job has ended but some of its pods have not, as far as is known: the watch of pods may be behind. A
  // finished job is not read again, so what its pods report is awaited. Only for kLastWords: a node may not answer.
  bool AwaitsPods(const Placed& placed, std::optional<WallTime> ended) {
    if (!ended || now_ >= *ended + kLastWords) return false;
    const bool behind =
        std::any_of(placed.pods.begin(), placed.pods.end(), [](const ObservedPod* pod) { return StillRuns(*pod); });
    if (behind) decision_.LookAgain(*ended + kLastWords);
    awaits_ = awaits_ || behind;
    return behind;
  }

  // True if the launcher has told nodes to end, and no trainer Job's own failure is known yet: the launcher ends last.
  bool AwaitsLauncher() {
    if (now_ >= told_ + kLastWords) return false;
    for (const Placed& placed : all_) {
      if (placed.planned->step != Step::kTrainer) continue;
      for (const PodFailure& found : failures_) {
        if (found.job == placed.planned->name) return false;
      }
    }
    decision_.LookAgain(told_ + kLastWords);
    awaits_ = true;
    return true;
  }

  // True if the job has ended, the step is restarted, or reports of pods are awaited.
  bool End() {
    if (Succeeded(plan_.success, all_)) {
      for (const Placed& placed : all_) {
        if (placed.job == nullptr || !placed.complete() || !placed.planned->agent) continue;
        if (AwaitsPods(placed, placed.job->complete_at)) return true;
      }
      SetComplete(job_, &status(), now_);
      Event(false, kComplete, "all jobs have completed");
      Stop();
      return true;
    }
    if (EndAtDeadline(job_, plan_.active_deadline_seconds, now_, &decision_)) {
      Stop();
      return true;
    }
    if (AwaitsLauncher()) return true;
    const PodFailure* cause = RootCause(failures_);
    const std::string why = cause == nullptr ? "" : Describe(cause->failure);
    const Placed* failed = nullptr;  // the Job that failed first
    for (const Placed& placed : all_) {
      if (placed.failed() && (failed == nullptr || placed.failure->at < failed->failure->at)) failed = &placed;
    }
    if (failed != nullptr && why.empty() && AwaitsPods(*failed, failed->job->failed_at)) return true;
    const bool spent = HasAgent() && status().restarts > plan_.max_restarts;
    const std::vector<FailedJob> failed_jobs = FailedJobs(all_, failures_, spent, job_.meta.ns);
    if (const auto match = MatchRule(plan_.failure_rules, failed_jobs)) return Follow(*match, why);
    // A fatal code may be the one that used up the budget, if only the policy of the agents restarts after it.
    if (cause != nullptr && cause->spent) return Fail(reason::kReachedMaxRestarts, cause->failure.job, why);
    if (cause != nullptr && cause->fatal) return Fail(reason::kFailedJobs, cause->failure.job, why);
    if (spent) return Fail(reason::kReachedMaxRestarts, cause == nullptr ? "" : cause->failure.job, why);
    if (failed == nullptr) {
      const std::string preempted = PreemptedGang(all_);
      if (!preempted.empty()) Restart(preempted, status().restarts);
      return !preempted.empty();
    }
    const ObservedJob& job = *failed->job;
    const std::string what = WhyOf(job.meta.name, failed->failure->reason, failed->failure->message, why);
    const RestartPolicy policy = failed->planned->restart;
    const bool has_no_budget = plan_.agents_only && !failed->planned->agent;
    if (IsInitializer(*failed->planned) || has_no_budget || policy == RestartPolicy::kNever ||
        (policy == RestartPolicy::kExitCode && failed->failure->reason == "PodFailurePolicy")) {
      return Fail(reason::kFailedJobs, job.meta.name, what);
    }
    if (HasAgent() && IsOverBudgetByOthers(*failed, status().failures)) {
      if (!AwaitsPods(*failed, job.failed_at)) Restart(what, status().restarts);
      return true;
    }
    if (status().restarts >= plan_.max_restarts) {
      return Fail(plan_.max_restarts == 0 ? reason::kFailedJobs : reason::kReachedMaxRestarts, job.meta.name, what);
    }
    Restart(what, {});
    return true;
  }

  // Does what the matching rule of the failurePolicy says.
  bool Follow(const RuleMatch& match, const std::string& cause) {
    const std::string what =
        fmt::format("{} (rule {} of the failurePolicy)",
                    WhyOf(match.job->name, match.job->reason, match.job->message, cause), match.rule->name);
    if (match.rule->action == FailureRule::Action::kFail) {
      return Fail(reason::kFailurePolicy, match.job->name, what);
    }
    const bool counted = match.rule->action == FailureRule::Action::kRestart;
    if (counted && status().restarts >= plan_.max_restarts)
      return Fail(reason::kReachedMaxRestarts, match.job->name, what);
    Restart(what, counted ? std::nullopt : std::optional(base_));
    return true;
  }

  bool Fail(const reason::Upstream& why, std::string_view first_job, std::string cause) {
    if (const PodFailure* root = RootCause(failures_); root != nullptr && !root->failure.next_step.empty()) {
      cause += fmt::format("; {}", root->failure.next_step);
    }
    std::string upstream = why.message;
    if (!first_job.empty()) upstream += fmt::format(" (first failed job: {})", first_job);
    // The failure that exceeded the budget was followed by no restart.
    if (HasAgent()) status().restarts = std::min(status().restarts, plan_.max_restarts);
    SetFailed(job_, &status(), why.reason, upstream, cause, now_);
    Event(true, kFailed, cause.empty() ? upstream : cause);
    Stop();
    return true;
  }

  // Restarts the whole step. Deletes its pods directly: the garbage collector would take seconds. `used`: the restarts
  // that are used up then, if this one is not counted. Does nothing while pods of a suspended Job are ending.
  void Restart(const std::string& cause, std::optional<int> used) {
    if (AwaitsSuspendedPods()) return;
    decision_.status_first = true;
    for (const Placed& placed : all_) {
      if (placed.job != nullptr) status().attempt = std::max(status().attempt, placed.job->attempt);
    }
    ++status().attempt;
    // A counted restart of the step costs at least one, even if no failure of its pods was counted.
    status().restarts = used.value_or(std::max(status().restarts, base_ + 1));
    const std::string which =
        used ? "not counted" : fmt::format("restart {} of {}", status().restarts, plan_.max_restarts);
    Event(true, kRestarting, fmt::format("the whole step starts again ({}): {}", which, cause));
    RemoveLeftOvers();
    std::erase_if(status().completed_jobs, [this](const std::string& name) {
      return std::none_of(plan_.jobs.begin(), plan_.jobs.end(), [&name](const PlannedJob& planned) {
        return planned.name == name && IsInitializer(planned);
      });
    });
    all_ = Place(plan_, observed_, status(), now_);
    failures_.clear();
    Start();
  }

  void RemoveLeftOvers() {
    const PodsByJob pods = GroupPods(observed_);
    const std::vector<const ObservedJob*> left = LeftOver(plan_, observed_, status().attempt);
    DeletePodGroups(left, &decision_);
    for (const ObservedJob* job : left) {
      Do(Action::Kind::kDeleteJob, job->meta.name, job->meta.uid);
      for (const ObservedPod* pod : PodsOf(*job, pods)) {
        if (!pod->meta.deleted) Do(Action::Kind::kDeletePod, pod->meta.name, pod->meta.uid);
      }
    }
  }

  // True if pods of a suspended Job are still ending, or the Job controller may not have seen that they are deleted:
  // it removes its finalizer afterwards. If a Job of the same name is created before, the Job controller counts these
  // deletions for no Job, and creates no pod for 5 minutes. Source: job_controller.go, resolveControllerRef;
  // controller_utils.go, ExpectationsTimeout. A deleted pod is awaited for kLostAfter: its node may be lost.
  bool IsEnding(const Placed& placed) {
    bool ending = placed.job->active > 0;
    for (const ObservedPod* pod : placed.pods) {
      ending = ending || StillRuns(*pod);
      if (!pod->tracked || !pod->meta.deleted || *pod->meta.deleted + kLostAfter <= now_) continue;
      ending = true;
      decision_.LookAgain(*pod->meta.deleted + kLostAfter);
    }
    return ending;
  }

  bool AwaitsSuspendedPods() {
    bool any = false;
    for (const Placed& placed : all_) any = (placed.suspended() && IsEnding(placed)) || any;
    return any;
  }

  void Suspend() {
    RemoveLeftOvers();  // a restart may have been interrupted after its status was written
    SuspendJobs(all_, &decision_);
  }

  // True if pods of the last attempt have not ended. A deleted pod is awaited for kLostAfter: its node may be lost.
  bool AwaitsOldPods() {
    bool any = false;
    std::unordered_map<std::string_view, const Placed*> placed_by_name;
    for (const Placed& placed : all_) placed_by_name[placed.planned->name] = &placed;
    for (const ObservedPod& pod : observed_.pods) {
      const auto placed = placed_by_name.find(pod.job);
      const bool counts = placed != placed_by_name.end() &&
                          (placed->second->job == nullptr || !pod.meta.IsControlledBy(placed->second->job->meta));
      if (!counts || pod.phase == "Succeeded" || pod.phase == "Failed") continue;
      const WallTime lost = pod.meta.deleted ? *pod.meta.deleted + kLostAfter : WallTime::max();
      if (lost <= now_) continue;
      any = true;
      if (pod.meta.deleted) decision_.LookAgain(lost);
    }
    return any;
  }

  void Start() {
    if (plan_.waits_for_old_pods && status().attempt > 0 && AwaitsOldPods()) return;
    SettleService(plan_.service, job_.meta, observed_.services, &decision_);
    const int left = std::max(0, plan_.max_restarts - status().restarts);
    std::unordered_map<std::string_view, bool> may_start;  // by replicated job
    for (const Placed& placed : all_) {
      if (placed.done || (placed.job != nullptr && !placed.suspended())) continue;
      const auto [may, is_new] = may_start.try_emplace(placed.planned->replicated_job);
      if (is_new) may->second = MayStart(placed, all_);
      if (!may->second || (placed.suspended() && IsEnding(placed))) continue;
      // A Job that was suspended is replaced: its template may have changed meanwhile.
      if (placed.suspended()) Do(Action::Kind::kDeleteJob, placed.job->meta.name, placed.job->meta.uid);
      if (!made_first_) CreateObjects(true);
      if (!IsInitializer(*placed.planned) && !made_others_) CreateObjects(false);
      const Attempt attempt{status().attempt, left, false, PodGroupOfStart(job_, status())};
      Do(Action::Kind::kCreateJob, placed.planned->name, "", [&planned = *placed.planned, attempt] {
        Json object = JobOfAttempt(planned, attempt);
        object["metadata"]["annotations"][kRestartsLeftAnnotation] = std::to_string(attempt.restarts_left);
        return object;
      });
      decision_.actions.back().bytes = placed.planned->common.bytes();
    }
  }

  // Creates the objects that pods need, in each pass that creates Jobs or scales one: they may be deleted or changed.
  void CreateObjects(bool for_initializers) {
    for (const PlannedObject& planned : plan_.objects) {
      if (planned.for_initializers == for_initializers) AddCreation(planned, job_, &decision_);
    }
    (for_initializers ? made_first_ : made_others_) = true;
  }

  // Puts the objects right that were deleted or edited while Jobs run that need them.
  void Repair() {
    for (const PlannedObject& planned : plan_.objects) {
      if (planned.for_initializers ? made_first_ : made_others_) continue;
      const bool is_needed = std::any_of(all_.begin(), all_.end(), [&planned](const Placed& placed) {
        return placed.runs() && (planned.for_initializers || !IsInitializer(*placed.planned));
      });
      if (is_needed && IsWrong(planned, job_.meta, observed_.objects)) decision_.actions.push_back(CreationOf(planned));
      if (is_needed) MakeSecretAgain(planned, observed_.pods, &decision_);
    }
  }

  // Scales an elastic job that runs, and tells its pods the number: new ones have the Job's first. 0: the run is over.
  void Scale() {
    for (const Placed& placed : all_) {
      if (!placed.planned->scales || !placed.runs()) continue;
      const int pods = placed.planned->pods;
      if (placed.job->pods != pods) {
        CreateObjects(false);
        Do(Action::Kind::kScaleJob, placed.job->meta.name, placed.job->meta.uid);
        decision_.actions.back().pods = pods;
        Event(false, reason::kScaled,
              fmt::format("Job {}: {} instead of {}", placed.job->meta.name, Counted(pods, "pod"), placed.job->pods));
      }
      const WallTime over = placed.run_ended ? *placed.run_ended + kRunEndsWithin : WallTime::max();
      if (placed.run_ended && now_ < over) decision_.LookAgain(over);
      const bool is_over = now_ >= over || (!placed.run_ended && HasUnseenSuccess(*placed.job, placed.pods));
      const int nodes = is_over ? 0 : pods;
      for (const ObservedPod* pod : placed.pods) {
        const std::string_view told = pod->meta.Annotation(kNodesAnnotation);
        if (!StillRuns(*pod) || told.empty() || told == fmt::format("{}", nodes)) continue;
        if (IsScaledAway(*pod, *placed.planned)) continue;
        Do(Action::Kind::kAnnotatePod, pod->meta.name, pod->meta.uid);
        decision_.actions.back().pods = nodes;
      }
    }
  }

  void Replace() {
    const LostPods lost(observed_, now_);
    if (lost.again()) decision_.LookAgain(*lost.again());
    for (const Placed& placed : all_) {
      if (placed.planned->restart == RestartPolicy::kNever || !placed.runs()) continue;
      if (!placed.planned->agent) {
        for (const ObservedPod* pod : placed.pods) GiveUp(*pod, now_, &decision_);
        continue;
      }
      controller::Replace(placed, lost, plan_.max_restarts > 0, now_, &decision_);
    }
  }

  const TrainJob& job_;
  const TrainJobPlan& plan_;
  const Observed& observed_;
  const WallTime now_;
  std::vector<Placed> all_;
  std::vector<PodFailure> failures_;
  std::vector<PodFailure> overcome_;  // by restarts in place; they decide nothing
  WallTime told_{};                   // when the last pod ended that the launcher had told to end
  const Hold* hold_ = nullptr;        // why the job does not begin yet; null: it may begin
  int base_ = 0;                      // restarts that were used before this attempt of the step
  bool made_first_ = false;           // CreateObjects(true) was called
  bool made_others_ = false;          // CreateObjects(false) was called
  bool awaits_ = false;               // the job is about to end: reports of pods are awaited
  TrainJobDecision decision_;
};

// The job waits for a person. Its own deadline holds all the same.
TrainJobDecision AwaitPerson(const TrainJob& job, const Status& why, WallTime now) {
  TrainJobDecision decision;
  decision.status = job.status;
  decision.reason = Message(why);
  SetSuspended(job, &decision.status, now);
  decision.status.state = job.suspend ? kSuspended : kWaiting;
  decision.status.reason = reason::kCreationFailed;
  decision.status.message = Message(why);
  if (EndAtDeadline(job, std::nullopt, now, &decision)) return decision;
  if (decision.status.message != job.status.message) {
    decision.events.push_back(
        {true, reason::kCreationFailed, fmt::format("TrainJob resources reconciliation failed: {}", Message(why))});
  }
  return decision;
}

TrainJobDecision Nothing(const TrainJob& job, std::string_view reason) {
  TrainJobDecision decision;
  decision.status = job.status;
  decision.reason = reason;
  return decision;
}

}  // namespace

bool NeedsPlan(const TrainJob& job, const Observed& observed) {
  const bool taken_over = observed.job_set && IsOf(*observed.job_set, job);
  return !job.meta.deleted && !job.status.Finished() && !taken_over;
}

TrainJobDecision Decide(const TrainJob& job, const StatusOr<const TrainJobPlan*>& plan, const Observed& observed,
                        WallTime now) {
  if (job.meta.deleted) return Nothing(job, "it is being deleted");
  if (job.status.Finished()) return DecideFinished(job, observed, now);
  if (observed.job_set && IsOf(*observed.job_set, job)) return DecideTakenOver(job, *observed.job_set, now);
  if (!plan.ok()) return AwaitPerson(job, plan.status(), now);
  return Deciding(job, **plan, observed, now).Make();
}

TrainJobDecision DecideAfterRefusal(const TrainJob& job, const Status& why, WallTime now) {
  return job.status.Finished() || job.meta.deleted ? Nothing(job, Message(why)) : AwaitPerson(job, why, now);
}

}  // namespace muster::controller

// SPDX-License-Identifier: Apache-2.0
#include "controller/reconcile/pytorch_decide.h"

#include <algorithm>

#include "base/text.h"
#include "controller/api/reasons.h"
#include "controller/plan/elastic.h"
#include "controller/plan/placement.h"
#include "controller/reconcile/deciding.h"
#include "controller/reconcile/failure.h"
#include "controller/reconcile/lost_nodes.h"
#include "controller/reconcile/pytorch_conditions.h"
#include "controller/reconcile/pytorch_finished.h"
#include "controller/reconcile/pytorch_replicas.h"
#include "controller/reconcile/pytorch_services.h"
#include "controller/reconcile/repair.h"
#include "controller/reconcile/waiting.h"

namespace muster::controller {
namespace {

constexpr size_t kMostNames = 16;  // in one event

std::string CauseOf(const Failure& failure) { return Describe(failure, true); }
// With what to do about it. The pod stays.
std::string CauseAndStep(const Failure& failure) { return Explain(failure, true); }

// One decision while it is made.
class Deciding {
 public:
  Deciding(const PyTorchJob& job, const PyTorchPlan& plan, const Observed& observed, WallTime now)
      : job_(job), plan_(plan), observed_(observed), now_(now) {
    decision_.status = job.status;
  }

  PyTorchDecision Make() {
    if (status().Finished()) {
      Finish();  // adds no condition: the end stays the last one, whoever wrote it
      return std::move(decision_);
    }
    SetCreated(job_, &status(), now_);
    if (job_.suspend) {
      Suspend();
    } else {
      Run();
    }
    return std::move(decision_);
  }

 private:
  PyTorchJobStatus& status() { return decision_.status; }

  void Do(Action::Kind kind, const Meta& meta) { decision_.actions.push_back({kind, meta.name, meta.uid}); }

  void Event(bool warning, std::string reason, std::string message) {
    decision_.events.push_back({warning, std::move(reason), std::move(message)});
  }

  void Finish() {
    decision_.reason = "it has ended";
    decision_.status_first = true;
    decision_.actions.clear();
    decision_.again.reset();
    // training-operator does not set completionTime when an exit code is fatal.
    if (!status().completion_time) status().completion_time = status().conditions.back().since;
    status().counted.clear();
    if (!status().Is(kJobFailed)) status().message.clear();
    for (const ReplicaType type : kReplicaTypes) {
      auto& counts = status().Of(type);
      if (!counts || !status().Is(kJobSucceeded)) continue;
      counts->succeeded += std::exchange(counts->active, 0);
    }
    CleanUp(job_, observed_, now_, &decision_);
  }

  void Suspend() {
    decision_.reason = "it is suspended";
    if (!status().Is(kJobSuspended)) {
      Event(false, ReasonOf(kJobSuspended), fmt::format("PyTorchJob {} is suspended.", job_.meta.name));
    }
    DeleteAll(job_, observed_, &decision_);
    SetSuspended(job_, &status(), now_);
    for (const ReplicaType type : kReplicaTypes) {
      if (status().Of(type)) status().Of(type)->active = 0;
    }
    ForgetSuccesses(&status());
    status().counted.clear();
    status().message.clear();
  }

  void Run() {
    if (status().Is(kJobSuspended)) {
      SetResumed(job_, &status(), now_);
      Event(false, reason::kPyTorchJobResumed, fmt::format("PyTorchJob {} is resumed.", job_.meta.name));
      status().start_time = now_;
    }
    if (!status().start_time) status().start_time = now_;
    replicas_ = PlaceReplicas(job_, plan_, observed_, now_);
    NoteFailures();
    if (End()) return;
    RemoveExtra();
    Restart();
    Fill();
    AnnotatePods();
    EndServing();
    CountReplicas(job_, plan_, replicas_, &status());
    SettleConditions();
  }

  // Ends containers that run beside `pytorch` for too long after it has succeeded (deciding.h).
  void EndServing() {
    for (const Replica& replica : replicas_.all) {
      const auto until = replica.pod == nullptr || replica.old ? std::nullopt : ServingEndsAt(*replica.pod);
      if (!until) continue;
      if (now_ < *until) {
        decision_.LookAgain(*until);
      } else {
        EndPod(*replica.pod, replica.pod->decides, &decision_);
        decision_.status_first = true;  // the success must be recorded before the pod fails by its deadline
      }
    }
  }

  void NoteFailures() {
    const Charged charged = Charge(plan_, replicas_, observed_.agents, &status());
    decision_.status_first = status().failures != job_.status.failures || status().restarts != job_.status.restarts;
    for (const Failure& failure : charged.overcome) decision_.events.push_back(RestartedInPods(failure, true));
    for (const Failure& failure : charged.failed) {
      if (failure.exit_code != 0) {
        Event(false, reason::kExitedWithCode,
              fmt::format("Pod: {}.{} exited with code {}", job_.meta.ns, failure.ended_pod(), failure.exit_code));
      }
      Event(true, failure.counted ? reason::kPodFailed : reason::kPodDisrupted, CauseAndStep(failure));
    }
  }

  // True: the job has ended.
  bool End() {
    if (HaveSucceeded(plan_, replicas_)) {
      CountReplicas(job_, plan_, replicas_, &status());
      SetSucceeded(job_, plan_.has_master, &status(), now_);
      Event(false, ReasonOf(kJobSucceeded), status().conditions.back().message);
      Finish();
      RemoveIdle(job_, replicas_, &decision_);
      return true;
    }
    if (job_.active_deadline_seconds) {
      const WallTime end = *status().start_time + std::chrono::seconds(*job_.active_deadline_seconds);
      if (now_ >= end) {
        return Fail(fmt::format("Job {} {}", job_.meta.name, kPastDeadline),
                    fmt::format(": {} s; raise spec.runPolicy.activeDeadlineSeconds", *job_.active_deadline_seconds));
      }
      decision_.LookAgain(end);
    }
    std::vector<PodFailure> found;
    for (const Replica& replica : replicas_.all) {
      if (replica.failure) found.push_back(*replica.failure);
    }
    const PodFailure* cause = RootCause(found);
    const bool spent = plan_.restart == RestartScope::kJob && cause != nullptr && cause->spent;
    if (cause != nullptr && cause->fatal && !spent) return Fail(FatalMessage(*cause));
    if (spent || (plan_.budget && status().restarts > *plan_.budget)) {
      // The last failure is not followed by a restart.
      if (plan_.budget) status().restarts = std::min(status().restarts, *plan_.budget);
      const Failure* last = cause != nullptr             ? &cause->failure
                            : !status().failures.empty() ? &status().failures.back()
                                                         : nullptr;
      return Fail(fmt::format("Job {} {}{}", job_.meta.name, kPastBackoffLimit,
                              last == nullptr ? "" : fmt::format(": {}", CauseAndStep(*last))));
    }
    return false;
  }

  std::string FatalMessage(const PodFailure& cause) const {
    std::vector<std::string> types;
    for (const auto& [type, failed] : replicas_.CountCauses(&Replica::HasFailedForGood)) {
      types.push_back(fmt::format("{} {} replica(s)", failed, ReplicaName(type)));
    }
    return fmt::format("PyTorchJob {} is failed because {} failed: {}", job_.meta.name, Join(types, " and "),
                       CauseAndStep(cause.failure));
  }

  // `more`: what training-operator's condition does not say.
  bool Fail(const std::string& message, const std::string& more = "") {
    CountReplicas(job_, plan_, replicas_, &status());
    SetFailed(&status(), message, now_);
    status().message = message + more;
    Event(true, ReasonOf(kJobFailed), status().message);
    Finish();
    return true;
  }

  void RemoveExtra() {
    std::vector<std::string> deleted;
    for (const ObservedPod* pod : replicas_.extra) {
      if (pod->meta.deleted) continue;
      Do(Action::Kind::kDeletePod, pod->meta);
      deleted.push_back(pod->meta.name);
    }
    if (!deleted.empty())
      Event(false, reason::kSuccessfulDeletePod, fmt::format("Deleted pod: {}", Join(deleted, ", ")));
  }

  // Deletes failed pods after their pause, to be replaced; all pods, if the job restarts as a whole.
  void Restart() {
    const bool whole = plan_.restart == RestartScope::kJob && !plan_.RestartsInPlace();
    std::optional<WallTime> due;
    const LostPods lost = whole ? LostPods() : LostPods(observed_, now_);
    if (lost.again()) decision_.LookAgain(*lost.again());
    for (Replica& replica : replicas_.all) {
      if (replica.pod == nullptr) continue;
      const ObservedPod& pod = *replica.pod;
      const bool stays = replica.old || replica.failure || replica.Succeeded();
      if (const auto not_on = stays ? std::nullopt : MoveOn(pod, lost, now_, &decision_)) {
        restarting_ = true;
        remade_[&replica] = *not_on;
        continue;
      }
      if (pod.meta.deleted) {
        DropWhereStuck(pod, now_, &decision_);
        NoteDeletion(replica);
        if (!replica.old && !replica.recorded) due = now_;
      } else if (replica.failure) {
        WallTime at = MadeAnewAt(replica, status(), now_);
        // The name is free at once only when the kubelet has set the phase.
        if (pod.will_fail && !whole) at = std::max(at, FailsUntil(pod, now_).value_or(now_));
        due = due ? std::min(*due, at) : at;
        if (at <= now_ && !whole) Remake(&replica);
        if (at > now_) decision_.LookAgain(at);
      }
    }
    if (!whole) return NoteVanished();
    const std::string vanished = Vanished();
    if (!due && vanished.empty()) return RemoveOld();
    if (due && *due > now_) return;
    ++status().attempt;
    decision_.status_first = true;
    const std::string why = vanished.empty() ? Lost() : fmt::format("pod {} is gone", vanished);
    Event(true, ReasonOf(kJobRestarting), fmt::format("all pods are recreated, {}: {}", Used(), why));
    ForgetSuccesses(&status());
    for (Replica& replica : replicas_.all) {
      replica.old = replica.pod != nullptr;
      replica.succeeded = replica.recorded = false;
    }
    RemoveOld();
  }

  // Why the first lost replica ended.
  std::string Lost() const {
    for (const Replica& replica : replicas_.all) {
      if (replica.pod == nullptr || replica.old) continue;
      if (replica.failure) return CauseOf(replica.failure->failure);
      if (replica.pod->meta.deleted) return fmt::format("pod {} was deleted", replica.name);
    }
    return "";
  }

  // A pod is deleted from outside while it runs: its exit code may never be read.
  void NoteDeletion(const Replica& replica) {
    if (replica.old || replica.failure || replica.Succeeded()) return;
    restarting_ = true;
    if (status().Is(kJobRestarting)) return;
    Event(true, reason::kPodDeleted,
          fmt::format("pod {} is being deleted; it is recreated, which uses no restart", replica.name));
  }

  std::string Used() const {
    const int restarts = decision_.status.restarts;
    return plan_.budget ? fmt::format("restart {} of {}", restarts, *plan_.budget)
                        : fmt::format("{} so far", Counted(restarts, "restart"));
  }

  // Replaces a failed pod. Its failure is in the status already.
  void Remake(Replica* replica) {
    Do(Action::Kind::kDeletePod, replica->pod->meta);
    Event(true, ReasonOf(kJobRestarting),
          fmt::format("PyTorchJob {} is restarting because {} replica {} failed, {}: {}", job_.meta.name,
                      ReplicaName(replica->planned->type), replica->index, Used(), CauseOf(replica->failure->failure)));
    restarting_ = restarting_ || replica->planned->restart != RestartPolicy::kNever;
    remade_[replica];
  }

  // A pod that was deleted after all pods of the job ran: its exit code may never have been read. Empty: none.
  std::string Vanished() const {
    if (!WasWhole(plan_, job_.status)) return "";
    for (const Replica& replica : replicas_.all) {
      if (replica.pod == nullptr && !replica.recorded) return replica.name;
    }
    return "";
  }

  void NoteVanished() {
    const std::string vanished = Vanished();
    if (vanished.empty()) return;
    restarting_ = true;
    Event(true, reason::kPodDeleted,
          fmt::format("pod {} was deleted before its exit code was read; it is recreated, which uses no restart",
                      vanished));
  }

  void RemoveOld() {
    for (const Replica& replica : replicas_.all) {
      if (!replica.old) continue;
      restarting_ = restarting_ || replica.pod->attempt < status().attempt;
      if (!replica.pod->meta.deleted) Do(Action::Kind::kDeletePod, replica.pod->meta);
    }
  }

  bool MayMakePods() {
    if (plan_.waits_for_pod_group) {
      const std::string phase = observed_.pod_group ? observed_.pod_group->phase : "";
      if (phase.empty() || phase == "Pending") {
        wait_ = fmt::format("PodGroup {}: Volcano has not let it in yet", job_.meta.name);
        return false;
      }
    }
    // All pods start together, when no pod of the last attempt is left.
    return std::none_of(replicas_.all.begin(), replicas_.all.end(), [](const Replica& replica) { return replica.old; });
  }

  // Creates what is missing: objects, Services, pods.
  void Fill() {
    for (const PlannedObject& planned : plan_.objects) {
      const bool made = observed_.has_objects || IsMounted(planned, observed_.pods);
      const bool is_there = made && !IsWrong(planned, job_.meta, observed_.objects);
      if (is_there) MakeSecretAgain(planned, observed_.pods, &decision_);
      if (!is_there) decision_.actions.push_back(CreationOf(planned));
    }
    decision_.objects_made = !observed_.has_objects;
    for (const ObservedPod* pod : replicas_.orphans) {
      Do(Action::Kind::kAdoptPod, pod->meta);
      Event(false, reason::kAdoptedPod,
            fmt::format("pod {} has the job's labels and had no owner: the job owns it now", pod->meta.name));
    }
    ServiceSteps services = SettleServices(job_, plan_, observed_);
    if (!services.conflict.empty() && services.conflict != job_.status.message) {
      Event(true, reason::kServiceConflict, services.conflict);
    }
    std::erase_if(services.actions, [this](const Action& action) { return action.object && !MayCreate(); });
    Made("Service", services.actions);
    for (Action& action : services.actions) decision_.actions.push_back(std::move(action));
    if (MayMakePods()) MakePods();
    if (wait_.empty()) NoteFirstWait();
    status().message = services.conflict.empty() ? wait_ : services.conflict;
  }

  void MakePods() {
    // Agents that meet have one budget: a pod that joins a run gets that of the others.
    const int used =
        plan_.RestartsInPlace() ? std::min(status().restarts, RestartsBefore(plan_, replicas_)) : status().restarts;
    const PodAttempt attempt{status().attempt, std::max(0, plan_.budget.value_or(kUnlimitedRestarts) - used)};
    std::vector<Action> made;
    for (const Replica& replica : replicas_.all) {
      const auto remade = remade_.find(&replica);
      if (replica.recorded || (remade == remade_.end() && (replica.pod != nullptr || !MayCreate()))) continue;
      Action action{.kind = Action::Kind::kCreatePod, .name = replica.name};
      action.object = [&job = job_, &plan = plan_, &planned = *replica.planned, index = replica.index, attempt,
                       not_on = remade == remade_.end() ? "" : remade->second] {
        Json pod = PodOfReplica(job, plan, planned, index, attempt);
        if (!not_on.empty()) ExcludeNode(not_on, &pod);
        return pod;
      };
      action.bytes = replica.planned->pod_template.bytes();
      made.push_back(std::move(action));
    }
    Made("Pod", made);
    for (Action& action : made) decision_.actions.push_back(std::move(action));
  }

  bool MayCreate() {
    if (created_++ < kMostCreations) return true;
    decision_.LookAgain(now_);
    return false;
  }

  // Records one event for all objects of this kind that the pass creates.
  void Made(std::string_view kind, const std::vector<Action>& actions) {
    std::vector<std::string> names;
    for (const Action& action : actions) {
      if (action.object) names.push_back(action.name);
    }
    if (names.empty()) return;
    // An event does not list a thousand names.
    const std::string all = names.size() <= kMostNames
                                ? Join(names, ", ")
                                : fmt::format("{} ... {} ({})", names.front(), names.back(), names.size());
    Event(false, fmt::format("{}{}", reason::kSuccessfulCreate, kind), fmt::format("Created {}: {}", Lower(kind), all));
  }

  // Writes the planned number of pods to each pod of an elastic job.
  void AnnotatePods() {
    const int nodes = job_.AllReplicas();
    for (const Replica& replica : replicas_.all) {
      if (replica.pod == nullptr || !StillRuns(*replica.pod)) continue;
      const std::string_view told = replica.pod->meta.Annotation(kNodesAnnotation);
      if (told.empty() || told == fmt::format("{}", nodes)) continue;
      Do(Action::Kind::kAnnotatePod, replica.pod->meta);
      decision_.actions.back().pods = nodes;
    }
  }

  // Sets wait_ to the first pod for which something is wrong, which becomes an event, else to the first that waits.
  void NoteFirstWait() {
    Wait first;
    std::optional<WallTime> again;
    for (const Replica& replica : replicas_.all) {
      auto wait = replica.pod == nullptr ? std::nullopt : WaitOf(*replica.pod, now_, &again);
      if (wait && SaysMore(*wait, first)) first = *std::move(wait);
      if (SaysAll(first)) break;
    }
    if (again) decision_.LookAgain(*again);
    if (IsNews(first, job_.status.message)) Event(true, reason::kWaiting, first.message);
    wait_ = std::move(first.message);
  }

  // Sets the last condition, which is the state. After a restart, Running is true again only when all replicas run.
  void SettleConditions() {
    const bool failed = std::any_of(replicas_.all.begin(), replicas_.all.end(),
                                    [](const Replica& replica) { return replica.HasFailed(); });
    if (restarting_ || failed) {
      SetJobCondition(&status(), kJobRestarting, true, ReasonOf(kJobRestarting), RestartingMessage(), now_);
      return;
    }
    const ReplicaType leading = plan_.has_master ? ReplicaType::kMaster : ReplicaType::kWorker;
    const bool runs = replicas_.Count(leading, &Replica::Runs) > 0;
    if (!runs || (status().Is(kJobRestarting) && !WasWhole(plan_, status()))) return;
    SetRunning(job_, plan_.has_master, &status(), now_);
  }

  std::string RestartingMessage() const {
    const std::map<ReplicaType, int> failed = replicas_.CountCauses(&Replica::HasFailed);
    if (!failed.empty()) {
      return fmt::format("PyTorchJob {} is restarting because {} {} replica(s) failed.", job_.meta.name,
                         failed.begin()->second, ReplicaName(failed.begin()->first));
    }
    return fmt::format("PyTorchJob {} is restarting because a pod of it is gone.", job_.meta.name);
  }

  const PyTorchJob& job_;
  const PyTorchPlan& plan_;
  const Observed& observed_;
  const WallTime now_;
  Replicas replicas_;
  // Their pods are deleted and created again in this pass. With the node on which they may not run; empty: none.
  std::map<const Replica*, std::string> remade_;
  std::string wait_;  // why no pods are made, or a pod does not run
  bool restarting_ = false;
  size_t created_ = 0;  // Services and pods
  PyTorchDecision decision_;
};

PyTorchDecision Nothing(const PyTorchJob& job, std::string_view reason) {
  PyTorchDecision decision;
  decision.status = job.status;
  decision.reason = reason;
  return decision;
}

// The job waits for a person. `event`: the reason of the event.
PyTorchDecision AwaitPerson(const PyTorchJob& job, const Status& why, std::string_view event, WallTime now) {
  PyTorchDecision decision = Nothing(job, Message(why));
  SetCreated(job, &decision.status, now);
  decision.status.message = Message(why);
  if (decision.status.message != job.status.message) {
    decision.events.push_back({true, std::string(event), decision.status.message});
  }
  return decision;
}

}  // namespace

bool NeedsPlan(const PyTorchJob& job, const Observed& /*observed*/) {
  return !job.meta.deleted && !job.status.Finished() && !job.suspend;
}

PyTorchDecision Decide(const PyTorchJob& job, const StatusOr<const PyTorchPlan*>& plan, const Observed& observed,
                       WallTime now) {
  if (job.meta.deleted) return Nothing(job, "it is being deleted");
  if (!plan.ok() && !job.status.Finished()) return AwaitPerson(job, plan.status(), reason::kInvalidPyTorchJob, now);
  static const PyTorchPlan kNone;
  const bool has_plan = plan.ok() && *plan != nullptr;
  return Deciding(job, has_plan ? **plan : kNone, observed, now).Make();
}

PyTorchDecision DecideAfterRefusal(const PyTorchJob& job, const Status& why, WallTime now) {
  if (job.status.Finished() || job.meta.deleted) return Nothing(job, Message(why));
  return AwaitPerson(job, why, reason::kFailedCreatePod, now);
}

}  // namespace muster::controller

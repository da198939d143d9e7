// SPDX-License-Identifier: Apache-2.0
#include "local/cluster/local_job.h"

#include "base/text.h"
#include "controller/api/labels.h"
#include "controller/plan/train_job_plan.h"
#include "controller/reconcile/pytorch_decide.h"
#include "controller/reconcile/train_job_decide.h"
#include "local/cluster/carry_out.h"

namespace muster::local {

using namespace controller;

namespace {

constexpr char kUsualNamespace[] = "default";  // kubectl's default, for a job that names none

// Carries out all actions in order, up to the first that fails.
Status CarryOutAll(const Steps& steps, std::string_view kind, const Meta& owner, WallTime now, World* world) {
  for (const Action& action : steps.actions) {
    MUSTER_RETURN_IF_ERROR(CarryOut(action, kind, owner, now, world));
  }
  return absl::OkStatus();
}

// Creates the object of the job itself. The other objects name its uid as their owner.
StatusOr<Meta> Place(std::string_view api, std::string_view kind, const Meta& meta, WallTime now, World* world) {
  MUSTER_ASSIGN_OR_RETURN(
      const Json* made,
      world->Create({{"apiVersion", api}, {"kind", kind}, {"metadata", {{"name", meta.name}, {"namespace", meta.ns}}}},
                    now));
  MUSTER_ASSIGN_OR_RETURN(Meta placed, ReadMeta(*made));
  placed.labels = meta.labels;
  placed.annotations = meta.annotations;
  return placed;
}

// Reads objects of a kind for a decision. Skips objects that cannot be read: the run itself has made none of those.
template <class Read>
auto ReadAll(const std::vector<const Json*>& objects, Read read) {
  std::vector<typename decltype(read(Json()))::value_type> all;
  for (const Json* object : objects) {
    if (auto one = read(*object); one.ok()) all.push_back(*std::move(one));
  }
  return all;
}

// Adds what is not in the objects of the pods: their Events, and where their logs are.
void Complete(const std::string& job, const World& world, std::vector<ObservedPod>* pods) {
  const std::vector<ObservedPodEvent> events = ReadAll(world.List("Event"), ReadPodEvent);
  for (ObservedPod& pod : *pods) {
    pod.logs = "muster logs " + job;
    for (const ObservedPodEvent& event : events) {
      if (event.pod_uid == pod.meta.uid) pod.event = event;
    }
  }
}

class LocalTrainJob : public LocalJob {
 public:
  LocalTrainJob(TrainJob job, TrainJobPlan plan, World* world)
      : job_(std::move(job)), plan_(std::move(plan)), world_(world) {}

  Steps Pass(WallTime now) override {
    const Observed observed = Observe();
    TrainJobDecision decision = Decide(job_, &plan_, observed, now);
    const Status done = CarryOutAll(decision, "TrainJob", job_.meta, now, world_);
    if (!done.ok()) decision = DecideAfterRefusal(job_, done, now);
    job_.status = decision.status;
    return decision;
  }

  LocalJobState State() const override {
    const TrainJobStatus& status = job_.status;
    return {.kind = "TrainJob",
            .name = job_.meta.name,
            .finished = status.Finished(),
            .succeeded = status.state == "Complete",
            .state = status.state,
            .message = status.message,
            .restarts = status.restarts,
            .budget = plan_.max_restarts,
            .failures = status.failures};
  }

 private:
  Observed Observe() const {
    Observed observed;
    observed.services = ReadAll(world_->ControlledBy("Service", job_.meta.uid), ReadService);
    observed.jobs = ReadAll(world_->ControlledBy("Job", job_.meta.uid), ReadJob);
    observed.pods = ReadAll(world_->List("Pod"), ReadPod);
    std::erase_if(observed.pods,
                  [this](const ObservedPod& pod) { return pod.meta.Label(kJobSetNameLabel) != job_.meta.name; });
    Complete(job_.meta.name, *world_, &observed.pods);
    return observed;
  }

  TrainJob job_;
  const TrainJobPlan plan_;
  World* const world_;
};

class LocalPyTorchJob : public LocalJob {
 public:
  LocalPyTorchJob(PyTorchJob job, PyTorchPlan plan, World* world)
      : job_(std::move(job)), plan_(std::move(plan)), world_(world) {}

  Steps Pass(WallTime now) override {
    PyTorchDecision decision = Decide(job_, &plan_, Observe(), now);
    const Status done = CarryOutAll(decision, kPyTorchJobKind, job_.meta, now, world_);
    has_objects_ = done.ok() && (has_objects_ || decision.objects_made);
    if (!done.ok()) decision = DecideAfterRefusal(job_, done, now);
    job_.status = decision.status;
    return decision;
  }

  LocalJobState State() const override {
    const PyTorchJobStatus& status = job_.status;
    const JobCondition* last = status.conditions.empty() ? nullptr : &status.conditions.back();
    return {.kind = kPyTorchJobKind,
            .name = job_.meta.name,
            .finished = status.Finished(),
            .succeeded = status.Is("Succeeded"),
            .state = last == nullptr ? "" : last->type,
            .message = last != nullptr && status.message.empty() ? last->message : status.message,
            .restarts = status.restarts,
            .budget = job_.backoff_limit.value_or(kUnlimitedRestarts),
            .failures = status.failures};
  }

 private:
  Observed Observe() const {
    std::vector<ObservedPod> pods = ReadAll(world_->ControlledBy("Pod", job_.meta.uid), ReadPod);
    Complete(job_.meta.name, *world_, &pods);
    Observed observed;
    observed.pods = std::move(pods);
    observed.services = ReadAll(world_->ControlledBy("Service", job_.meta.uid), ReadService);
    observed.has_objects = has_objects_;
    return observed;
  }

  PyTorchJob job_;
  const PyTorchPlan plan_;
  World* const world_;
  bool has_objects_ = false;
};

}  // namespace

StatusOr<std::unique_ptr<LocalJob>> BeginTrainJob(const PlannedTrainJob& planned, const PlanOptions& options,
                                                  WallTime now, World* world) {
  TrainJob job = planned.job;
  if (job.meta.ns.empty()) job.meta.ns = kUsualNamespace;
  MUSTER_ASSIGN_OR_RETURN(job.meta, Place(kTrainerApi, "TrainJob", job.meta, now, world));
  MUSTER_ASSIGN_OR_RETURN(TrainJobPlan plan, PlanTrainJob(job, planned.runtime, options));
  return std::make_unique<LocalTrainJob>(std::move(job), std::move(plan), world);
}

StatusOr<std::unique_ptr<LocalJob>> BeginPyTorchJob(const PlannedPyTorchJob& planned, const PlanOptions& options,
                                                    WallTime now, World* world) {
  PyTorchJob job = planned.job;
  if (job.meta.ns.empty()) job.meta.ns = kUsualNamespace;
  MUSTER_ASSIGN_OR_RETURN(job.meta, Place(kKubeflowApi, kPyTorchJobKind, job.meta, now, world));
  MUSTER_ASSIGN_OR_RETURN(PyTorchPlan plan, PlanPyTorchJob(job, {.agent = options}));
  return std::make_unique<LocalPyTorchJob>(std::move(job), std::move(plan), world);
}

}  // namespace muster::local

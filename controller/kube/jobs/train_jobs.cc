// SPDX-License-Identifier: Apache-2.0
#include "controller/kube/jobs/train_jobs.h"

#include <algorithm>

#include "base/text.h"
#include "controller/api/labels.h"
#include "controller/api/reasons.h"
#include "controller/api/runtime.h"
#include "controller/kube/client/answer.h"
#include "controller/kube/jobs/job_controller.h"
#include "controller/kube/jobs/train_job_cache.h"
#include "controller/plan/train_job_plan.h"
#include "controller/reconcile/repair.h"
#include "controller/reconcile/trainer_progress.h"

namespace muster::controller {
namespace {

// The fieldManager of status.trainerStatus. Not that of the posts: they take the fields over.
constexpr char kTrainingOwner[] = "muster-training";

}  // namespace

class TrainJobs::Impl final : public JobController<TrainJobKind, TrainJobCache> {
 public:
  Impl(const ControllerContext& context, RuntimeCache& runtimes, Options options)
      : JobController(context, options.queue, options.ns, runtimes),
        runtimes_(runtimes),
        options_(std::move(options.plan)) {}

  void PlanWith(PlanOptions options) { options_ = std::move(options); }

 private:
  Awaitable<StatusOr<SharedPlan>> PlanOf(std::string key, const TrainJob& job) override {
    const Known* of = cache_.Find(key);
    if (of->IsPlanned()) co_return of->plan;
    if (of->whole.is_null()) co_return absl::AbortedError("it has just changed");
    auto whole = ReadTrainJob(of->whole.Unpack());
    if (!whole.ok()) co_return whole.status();
    whole->status = job.status;
    auto planned = co_await PlanBySnapshot(*whole, of->runtime);
    if (!planned.ok()) co_return planned.status();
    auto plan = std::make_shared<const TrainJobPlan>(std::move(planned->plan));
    Known* known = cache_.Find(key);
    if (known != nullptr && known->job.meta.uid == job.meta.uid) {
      if (known->HasNews()) {
        for (const Notice& notice : plan->notices) Record(job, notice);
      }
      known->plan = plan;
      known->runtime = runtimes_.Pack(job.runtime, job.meta.ns, planned->runtime);
      known->planned_generation = job.meta.generation;
      if (known->IsPlanned()) known->whole = {};
    }
    co_return plan;
  }

  Awaitable<Status> CarriedOut(std::string key, const TrainJob& job, SharedPlan plan,
                               const TrainJobDecision& decision) override {
    Known* known = cache_.Find(key);
    if (known != nullptr && decision.training && decision.training != known->training) {
      known->training = decision.training;
      known->training_at = decision.training_at;
    }
    const Status told = co_await TellTraining(key, job);
    if (!told.ok() || plan == nullptr) co_return told;
    co_return co_await KeepSnapshot(key, job);
  }

  // Writes status.trainerStatus, until the pods of the job post it themselves.
  Awaitable<Status> TellTraining(const std::string& key, const TrainJob& job) {
    const Known* known = cache_.Find(key);
    if (known == nullptr || known->posts || known->training == known->told) co_return absl::OkStatus();
    if (!context_.may_act()) co_return absl::AbortedError(kNotLeading);
    const TrainingFacts training = *known->training;
    Json status = {{"trainerStatus", TrainerStatusOf(training, known->training_at)}};
    auto applied = co_await ApplyTraining(job, std::move(status));
    const bool posts = absl::IsAborted(applied.status());
    // What a pod's post does not have would stay.
    if (posts) applied = co_await ApplyTraining(job, Json::object());
    if (absl::IsNotFound(applied.status())) co_return absl::OkStatus();
    if (!applied.ok()) co_return applied.status();
    if (Known* now = cache_.Find(key); now != nullptr && now->job.meta.uid == job.meta.uid) {
      now->told = training;
      now->posts = posts;
    }
    cache_.Put(TrainJobKind::kResource, *applied);
    co_return absl::OkStatus();
  }

  Awaitable<StatusOr<Json>> ApplyTraining(const TrainJob& job, Json status) {
    const ActionOwner owner{TrainJobKind::kResource, TrainJobKind::kName, job.meta};
    const Json object = StatusOf(owner, std::move(status));
    co_return co_await Answer([&](ApiClient::Done done) {
      return context_.client.ApplyAs(kTrainingOwner, TrainJobKind::kResource, job.meta.ns, job.meta.name, "status",
                                     object, std::move(done));
    });
  }

  struct Planned {
    TrainJobPlan plan;
    Json runtime;  // by which it was made
  };

  StatusOr<Planned> PlanOfRuntime(const TrainJob& job, StatusOr<Json> runtime) const {
    if (!runtime.ok()) return runtime.status();
    auto read = ReadRuntime(*runtime);
    if (!read.ok()) return Annotate(read.status(), fmt::format("{} {}", job.runtime.kind, job.runtime.name));
    MUSTER_ASSIGN_OR_RETURN(TrainJobPlan plan, PlanTrainJob(job, *read, options_));
    return Planned{std::move(plan), *std::move(runtime)};
  }

  // By the snapshot of the runtime. The first pass that can plan the job creates it. Until then the live runtime is
  // used, so that a wrong one can be corrected. A snapshot that was deleted is created again from `known`, the runtime
  // of the last plan; without that, from the live one.
  Awaitable<StatusOr<Planned>> PlanBySnapshot(const TrainJob& job, PackedJson known) {
    if (job.status.start_time) {  // an earlier pass has created the snapshot
      auto snapshot = co_await Snapshot(job);
      if (snapshot.ok()) co_return PlanOfRuntime(job, ReadSnapshot(job, *snapshot));
      if (!absl::IsNotFound(snapshot.status())) co_return snapshot.status();
    }
    auto planned = PlanOfRuntime(job, known.is_null() ? LiveRuntimeOf(job) : known.Unpack());
    if (planned.ok()) {
      auto created = co_await CreateSnapshot(job, planned->runtime);
      if (created.ok()) {
        if (job.status.start_time && known.is_null()) SayLost(job);
        co_return planned;
      }
      if (!absl::IsAlreadyExists(created)) co_return created;
    }
    auto snapshot = co_await Snapshot(job);
    if (snapshot.ok()) co_return PlanOfRuntime(job, ReadSnapshot(job, *snapshot));
    if (!absl::IsNotFound(snapshot.status())) co_return snapshot.status();
    if (planned.ok()) co_return absl::AbortedError(fmt::format("ConfigMap {} has just gone", SnapshotName(job)));
    co_return planned.status();
  }

  Awaitable<StatusOr<Json>> Snapshot(const TrainJob& job) {
    return Answer([this, &job](ApiClient::Done done) {
      return context_.client.Get(kConfigMaps, job.meta.ns, SnapshotName(job), std::move(done));
    });
  }

  Awaitable<Status> CreateSnapshot(const TrainJob& job, const Json& runtime) {
    if (!context_.may_act()) co_return absl::AbortedError(kNotLeading);
    const auto made = MakeSnapshot(job, runtime);
    if (!made.ok()) co_return made.status();
    auto created = co_await Answer(
        [&](ApiClient::Done done) { return context_.client.Create(kConfigMaps, job.meta.ns, *made, std::move(done)); });
    if (created.ok()) cache_.Put(kConfigMaps, *created);
    co_return created.status();
  }

  // True if the ConfigMap is there, whoever owns it.
  bool HasSnapshot(const TrainJob& job) {
    const auto& objects = *cache_.Of(job).objects;
    return std::any_of(objects.begin(), objects.end(), [name = SnapshotName(job)](const ObservedObject& object) {
      return object.kind == kConfigMapKind && object.meta.name == name;
    });
  }

  // Creates the snapshot of a job that has a plan again, after it was deleted. One that lost its label, or was made
  // without, gets it. One of another owner stays: the job goes on, and the next plan names the owner.
  Awaitable<Status> KeepSnapshot(const std::string& key, const TrainJob& job) {
    const Known* known = cache_.Find(key);
    if (known == nullptr || known->runtime.is_null() || HasSnapshot(job)) co_return absl::OkStatus();
    const Status created = co_await CreateSnapshot(job, known->runtime.Unpack());
    if (!absl::IsAlreadyExists(created)) co_return created;
    const auto there = co_await Snapshot(job);
    if (!there.ok() || !ReadSnapshot(job, *there).ok()) co_return absl::OkStatus();
    const Json patch = {{"metadata", {{"labels", {{kJobSetNameLabel, job.meta.name}}}}}};
    const auto labelled = co_await Answer([&](ApiClient::Done done) {
      return context_.client.Merge(kConfigMaps, job.meta.ns, SnapshotName(job), "", patch, std::move(done));
    });
    if (labelled.ok()) cache_.Put(kConfigMaps, *labelled);
    co_return labelled.status();
  }

  void SayLost(const TrainJob& job) {
    Record(job, {.reason = reason::kSnapshotLost,
                 .message = fmt::format("ConfigMap {} was gone when this controller began, and nothing else holds the "
                                        "runtime that the job began with: from now on it is planned by {} {} as that "
                                        "is now",
                                        SnapshotName(job), job.runtime.kind, job.runtime.name),
                 .warning = true});
  }

  StatusOr<Json> LiveRuntimeOf(const TrainJob& job) const {
    if (RuntimeResource(job.runtime) == nullptr) {
      return absl::InvalidArgumentError(
          fmt::format("spec.runtimeRef: unsupported runtime: {}.{}; want "
                      "ClusterTrainingRuntime or TrainingRuntime of {}",
                      job.runtime.kind, job.runtime.api_group, kTrainerGroup));
    }
    if (auto found = runtimes_.Find(job.runtime, job.meta.ns)) return *std::move(found);
    return absl::NotFoundError(fmt::format("spec.runtimeRef: there is no {} {}; it starts once that is created",
                                           job.runtime.kind, job.runtime.name));
  }

  RuntimeCache& runtimes_;
  PlanOptions options_;
};

TrainJobs::TrainJobs(const ControllerContext& context, RuntimeCache& runtimes, Options options)
    : impl_(std::make_unique<Impl>(context, runtimes, std::move(options))) {}
TrainJobs::~TrainJobs() = default;
void TrainJobs::Begin() { impl_->Begin(); }
bool TrainJobs::synced() const { return impl_->synced(); }
void TrainJobs::PlanWith(PlanOptions options) { impl_->PlanWith(std::move(options)); }
JobCounts TrainJobs::counts() const { return impl_->counts(); }

}  // namespace muster::controller

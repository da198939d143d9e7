#include "controller/kube/jobs/train_jobs.h"

#include "base/log.h"
#include "base/text.h"
#include "controller/api/labels.h"
#include "controller/api/reasons.h"
#include "controller/api/runtime.h"
#include "controller/kube/client/answer.h"
#include "controller/kube/jobs/agent_asks.h"
#include "controller/kube/jobs/train_job_cache.h"
#include "controller/plan/train_job_plan.h"
#include "controller/reconcile/finished.h"

namespace muster::controller {

namespace asio = boost::asio;

class TrainJobs::Impl {
 public:
  Impl(Means means, Options options)
      : means_(std::move(means)),
        options_(std::move(options)),
        cache_(means_.loop, means_.client, means_.runtimes, options_.ns,
               {.changed = [this](const std::string& key) { passes_->Add(key, IsNew(key)); },
                .gone =
                    [this](const std::string& key) {
                      passes_->Forget(key);
                      asks_.Forget(key);
                    }}),
        asks_(means_.loop,
              [this](const std::string& key, AgentsSaid said) {
                KnownTrainJob* known = cache_.Find(key);
                if (known != nullptr && TakeNews(std::move(said), &known->agents)) passes_->Add(key, false);
              }),
        passes_(std::make_shared<Passes>(
            ServingMeans{means_.loop, means_.client, means_.events, means_.may_act}, options_.queue, "TrainJob",
            [this](std::string key, Duration* spent) { return Reconcile(std::move(key), spent); })) {}

  void Watch() { cache_.Begin(); }
  void PlanWith(PlanOptions options) { options_.plan = std::move(options); }
  bool synced() const { return cache_.synced(); }

  Counts counts() const {
    Counts counts{.passes = passes_->counts(), .jobs_by_state = {}};
    for (const auto& [key, known] : cache_.jobs()) ++counts.jobs_by_state[known.job.status.state];
    return counts;
  }

 private:
  // True if the job has no plan yet: its first pass goes before those of older jobs.
  bool IsNew(const std::string& key) {
    const KnownTrainJob* known = cache_.Find(key);
    return known != nullptr && known->plan == nullptr && !known->job.status.Finished();
  }

  asio::awaitable<Status> Reconcile(std::string key, Duration* spent) {
    const KnownTrainJob* known = cache_.Find(key);
    if (known == nullptr) co_return absl::OkStatus();
    const TrainJob job = known->job;
    if (job.meta.deleted) co_return absl::OkStatus();
    if (job.status.Finished() || job.suspend) asks_.Forget(key);
    if (job.status.Finished()) co_return co_await CarryOut(job, DecideFinished(job, cache_.Of(job, ""), WallNow()));
    if (const ObservedJobSet* job_set = cache_.JobSetOf(job)) {
      co_return co_await CarryOut(job, DecideTakenOver(job, *job_set, WallNow()));
    }
    if (const Status why = known->unreadable; !why.ok()) {
      co_return co_await CarryOut(job, DecideWithoutPlan(job, why, WallNow()));
    }
    auto plan = co_await PlanOf(key, job);
    if (!plan.ok()) {
      const Status written = co_await CarryOut(job, DecideWithoutPlan(job, plan.status(), WallNow()));
      // A failure of the server is retried. An error that the user must correct is not: the correction wakes the job.
      const bool may_pass = absl::IsUnavailable(plan.status()) || absl::IsAborted(plan.status()) ||
                            absl::IsFailedPrecondition(plan.status());  // e.g. a foreign ConfigMap in its place
      co_return may_pass ? plan.status() : written;
    }
    const TimePoint begun = MonotonicClock::now();
    const Decision decision = Decide(job, **plan, cache_.Of(job, (*plan)->subdomain), WallNow());
    *spent = MonotonicClock::now() - begun;
    if (!job.suspend) asks_.Ask(key, WhomToAsk(**plan, cache_.Of(job, (*plan)->subdomain)));
    Status status = co_await CarryOut(job, decision);
    if (status.ok()) status = co_await KeepSnapshot(key, job);
    if (status.ok() || absl::IsUnavailable(status) || absl::IsAborted(status)) co_return status;
    const Status told = co_await CarryOut(job, DecideWithoutPlan(job, status, WallNow()));
    co_return told.ok() ? status : told;
  }

  asio::awaitable<StatusOr<std::shared_ptr<const Plan>>> PlanOf(std::string key, const TrainJob& job) {
    if (const KnownTrainJob* known = cache_.Find(key);
        known != nullptr && known->plan && known->planned_generation == job.meta.generation) {
      co_return known->plan;
    }
    const KnownTrainJob* of = cache_.Find(key);
    if (of == nullptr || of->whole.is_null()) co_return absl::AbortedError("it has just changed");
    auto whole = ReadTrainJob(of->whole.Unpack());
    if (!whole.ok()) co_return whole.status();
    whole->status = job.status;
    auto planned = co_await PlanBySnapshot(*whole, of->runtime);
    if (!planned.ok()) co_return planned.status();
    for (const Notice& notice : planned->plan.notices) {
      means_.events.Record(kTrainerApi, "TrainJob", job.meta, notice.warning, notice.reason, notice.message, WallNow());
    }
    auto shared = std::make_shared<const Plan>(std::move(planned->plan));
    KnownTrainJob* known = cache_.Find(key);
    if (known != nullptr && known->job.meta.uid == job.meta.uid) {
      known->plan = shared;
      known->runtime = means_.runtimes.Pack(job.runtime, job.meta.ns, planned->runtime);
      known->planned_generation = job.meta.generation;
      if (known->job.meta.generation == job.meta.generation) known->whole = {};
    }
    co_return shared;
  }

  struct Planned {
    Plan plan;
    Json runtime;  // by which it was made
  };

  StatusOr<Planned> PlanOfRuntime(const TrainJob& job, StatusOr<Json> runtime) const {
    if (!runtime.ok()) return runtime.status();
    auto read = ReadRuntime(*runtime);
    if (!read.ok()) return Annotate(read.status(), fmt::format("{} {}", job.runtime.kind, job.runtime.name));
    MUSTER_ASSIGN_OR_RETURN(Plan plan, PlanTrainJob(job, *read, options_.plan));
    return Planned{std::move(plan), *std::move(runtime)};
  }

  // By the snapshot of the runtime. The first pass that can plan the job creates it. Until then the live runtime is
  // used, so that a wrong one can be corrected. A snapshot that was deleted is created again from `known`, the runtime
  // of the last plan; without that, from the live one.
  asio::awaitable<StatusOr<Planned>> PlanBySnapshot(const TrainJob& job, PackedJson known) {
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

  asio::awaitable<StatusOr<Json>> Snapshot(const TrainJob& job) {
    return Answer([this, &job](ApiClient::Done done) {
      return means_.client.Get(kConfigMaps, job.meta.ns, SnapshotName(job), std::move(done));
    });
  }

  asio::awaitable<Status> CreateSnapshot(const TrainJob& job, const Json& runtime) {
    if (!means_.may_act()) co_return absl::AbortedError(kNotLeading);
    const auto made = MakeSnapshot(job, runtime);
    if (!made.ok()) co_return made.status();
    auto created = co_await Answer(
        [&](ApiClient::Done done) { return means_.client.Create(kConfigMaps, job.meta.ns, *made, std::move(done)); });
    if (created.ok()) cache_.Put(kConfigMaps, *created);
    co_return created.status();
  }

  // Creates the snapshot of a job that has a plan again, after it was deleted. One that lost its label, or was made
  // without, gets it. One of another owner stays: the job goes on, and the next plan names the owner.
  asio::awaitable<Status> KeepSnapshot(const std::string& key, const TrainJob& job) {
    const KnownTrainJob* known = cache_.Find(key);
    if (known == nullptr || known->runtime.is_null() || cache_.HasSnapshot(job)) co_return absl::OkStatus();
    const Status created = co_await CreateSnapshot(job, known->runtime.Unpack());
    if (!absl::IsAlreadyExists(created)) co_return created;
    const auto there = co_await Snapshot(job);
    if (!there.ok() || !ReadSnapshot(job, *there).ok()) co_return absl::OkStatus();
    const Json patch = {{"metadata", {{"labels", {{kJobSetNameLabel, job.meta.name}}}}}};
    const auto labelled = co_await Answer([&](ApiClient::Done done) {
      return means_.client.Merge(kConfigMaps, job.meta.ns, SnapshotName(job), "", patch, std::move(done));
    });
    if (labelled.ok()) cache_.Put(kConfigMaps, *labelled);
    co_return labelled.status();
  }

  void SayLost(const TrainJob& job) {
    means_.events.Record(
        kTrainerApi, "TrainJob", job.meta, true, reason::kSnapshotLost,
        fmt::format("ConfigMap {} was gone when this controller began, and nothing else holds the "
                    "runtime that the job began with: from now on it is planned by {} {} as that is now",
                    SnapshotName(job), job.runtime.kind, job.runtime.name),
        WallNow());
  }

  StatusOr<Json> LiveRuntimeOf(const TrainJob& job) const {
    if (RuntimeResource(job.runtime) == nullptr) {
      return absl::InvalidArgumentError(
          fmt::format("spec.runtimeRef: unsupported runtime: {}.{}; want "
                      "ClusterTrainingRuntime or TrainingRuntime of {}",
                      job.runtime.kind, job.runtime.api_group, kTrainerGroup));
    }
    if (auto found = means_.runtimes.Find(job.runtime, job.meta.ns)) return *std::move(found);
    return absl::NotFoundError(fmt::format("spec.runtimeRef: there is no {} {}; it starts once that is created",
                                           job.runtime.kind, job.runtime.name));
  }

  asio::awaitable<Status> CarryOut(const TrainJob& job, Decision decision) {
    const ActionOwner owner{kTrainJobs, "TrainJob", job.meta};
    std::optional<Json> status;
    if (!(decision.status == job.status)) status = StatusOf(owner, WriteStatus(decision.status));
    co_return co_await passes_->CarryOut(owner, decision, std::move(status), cache_);
  }

  const Means means_;
  Options options_;
  TrainJobCache cache_;
  AgentAsks asks_;
  std::shared_ptr<Passes> passes_;
};

TrainJobs::TrainJobs(Means means, Options options)
    : impl_(std::make_unique<Impl>(std::move(means), std::move(options))) {}
TrainJobs::~TrainJobs() = default;
void TrainJobs::Begin() { impl_->Watch(); }
bool TrainJobs::synced() const { return impl_->synced(); }
void TrainJobs::PlanWith(PlanOptions options) { impl_->PlanWith(std::move(options)); }
TrainJobs::Counts TrainJobs::counts() const { return impl_->counts(); }

}  // namespace muster::controller

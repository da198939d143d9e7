#include "controller/kube/jobs/pytorch_jobs.h"

#include <algorithm>

#include "base/log.h"
#include "base/text.h"
#include "controller/api/reasons.h"
#include "controller/kube/jobs/agent_asks.h"
#include "controller/kube/jobs/pytorch_job_cache.h"
#include "controller/reconcile/pytorch_decide.h"

namespace muster::controller {

namespace asio = boost::asio;

namespace {

const Resource* PodGroupsOf(const std::string& gang_scheduler) {
  if (gang_scheduler.empty()) return nullptr;
  return gang_scheduler == kVolcanoScheduler ? &kVolcanoPodGroups : &kPodGroups;
}

// True if pods of training-operator still run. New pods must work with them, so they are planned without the agent.
bool RunForeignPods(const ObservedReplicas& observed) {
  return std::any_of(observed.pods.begin(), observed.pods.end(),
                     [](const ObservedPod& pod) { return StillRuns(pod) && !pod.made_here; });
}

}  // namespace

class PyTorchJobs::Impl {
 public:
  Impl(const ServingMeans& means, Options options)
      : means_(means),
        options_(std::move(options)),
        cache_(means_.loop, means_.client, options_.ns, PodGroupsOf(options_.plan.gang_scheduler),
               {.changed = [this](const std::string& key) { passes_->Add(key, IsNew(key)); },
                .gone =
                    [this](const std::string& key) {
                      passes_->Forget(key);
                      asks_.Forget(key);
                    }}),
        asks_(means_.loop,
              [this](const std::string& key, AgentsSaid said) {
                KnownPyTorchJob* known = cache_.Find(key);
                if (known != nullptr && TakeNews(std::move(said), &known->agents)) passes_->Add(key, false);
              }),
        passes_(std::make_shared<Passes>(
            means, options_.queue, kPyTorchJobKind,
            [this](std::string key, Duration* spent) { return Reconcile(std::move(key), spent); })) {}

  void Watch() { cache_.Begin(); }
  bool synced() const { return cache_.synced(); }

  Counts counts() const {
    Counts counts{.passes = passes_->counts(), .jobs_by_state = {}};
    for (const auto& [key, known] : cache_.jobs()) {
      const auto& conditions = known.job.status.conditions;
      ++counts.jobs_by_state[conditions.empty() ? "" : conditions.back().type];
    }
    return counts;
  }

 private:
  // True if the job has no plan yet: its first pass goes before those of older jobs.
  bool IsNew(const std::string& key) {
    const KnownPyTorchJob* known = cache_.Find(key);
    return known != nullptr && known->plan == nullptr && !known->job.status.Finished();
  }

  asio::awaitable<Status> Reconcile(std::string key, Duration* spent) {
    KnownPyTorchJob* known = cache_.Find(key);
    if (known == nullptr || known->job.meta.deleted) co_return absl::OkStatus();
    const PyTorchJob job = known->job;
    if (const Status why = known->unreadable; !why.ok()) {
      co_return co_await CarryOut(job, DecideWithoutPlan(job, why, reason::kInvalidPyTorchJob, WallNow()));
    }
    const auto plan = PlanOf(known);
    if (!plan.ok()) {
      co_return co_await CarryOut(job, DecideWithoutPlan(job, plan.status(), reason::kInvalidPyTorchJob, WallNow()));
    }
    const TimePoint begun = MonotonicClock::now();
    const PyTorchDecision decision = DecidePyTorchJob(job, **plan, cache_.Of(*known), WallNow());
    *spent = MonotonicClock::now() - begun;
    asks_.Ask(key, job.suspend || decision.status.Finished() ? std::nullopt : WhomToAsk(**plan, cache_.Of(*known)));
    const Status status = co_await CarryOut(job, decision);
    if (status.ok() && (decision.objects_made || job.suspend)) {
      known = cache_.Find(key);
      const bool same = known != nullptr && known->job.meta.uid == job.meta.uid;
      if (same) known->objects_generation = decision.objects_made ? job.meta.generation : -1;
    }
    if (status.ok() || absl::IsUnavailable(status) || absl::IsAborted(status)) co_return status;
    const Status told = co_await CarryOut(job, DecideWithoutPlan(job, status, reason::kFailedCreatePod, WallNow()));
    co_return told.ok() ? status : told;
  }

  StatusOr<std::shared_ptr<const PyTorchPlan>> PlanOf(KnownPyTorchJob* known) {
    const PyTorchJob& job = known->job;
    // A job that has ended or is suspended needs no pods.
    if (job.status.Finished() || job.suspend) return std::make_shared<const PyTorchPlan>();
    const bool with_agent = !RunForeignPods(cache_.Of(*known));
    if (known->plan && known->planned_generation == job.meta.generation && known->planned_with_agent == with_agent) {
      return known->plan;
    }
    PyTorchOptions options = options_.plan;
    options.with_agent = with_agent;
    MUSTER_ASSIGN_OR_RETURN(const PyTorchJob whole, ReadPyTorchJob(known->whole.Unpack()));
    MUSTER_ASSIGN_OR_RETURN(PyTorchPlan plan, PlanPyTorchJob(whole, options));
    for (const Notice& notice : plan.notices) {
      means_.events.Record(kKubeflowApi, kPyTorchJobKind, job.meta, notice.warning, notice.reason, notice.message,
                           WallNow());
    }
    known->plan = std::make_shared<const PyTorchPlan>(std::move(plan));
    known->planned_generation = job.meta.generation;
    known->planned_with_agent = with_agent;
    return known->plan;
  }

  asio::awaitable<Status> CarryOut(const PyTorchJob& job, PyTorchDecision decision) {
    const ActionOwner owner{kPyTorchJobs, kPyTorchJobKind, job.meta};
    std::optional<Json> status;
    if (!(decision.status == job.status)) status = StatusOf(owner, WritePyTorchJobStatus(decision.status));
    co_return co_await passes_->CarryOut(owner, decision, std::move(status), cache_);
  }

  const ServingMeans means_;
  const Options options_;
  PyTorchJobCache cache_;
  AgentAsks asks_;
  std::shared_ptr<Passes> passes_;
};

PyTorchJobs::PyTorchJobs(ServingMeans means, Options options)
    : impl_(std::make_unique<Impl>(std::move(means), std::move(options))) {}
PyTorchJobs::~PyTorchJobs() = default;
void PyTorchJobs::Begin() { impl_->Watch(); }
bool PyTorchJobs::synced() const { return impl_->synced(); }
PyTorchJobs::Counts PyTorchJobs::counts() const { return impl_->counts(); }

}  // namespace muster::controller

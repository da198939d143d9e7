// SPDX-License-Identifier: Apache-2.0
// The controller of the jobs of one kind (job_cache.h says what a kind is): watches them and what belongs to them,
// decides by reconcile and carries the decisions out. A job has one pass at a time. Loop thread only.
//
// A pass never sees a state that is older than the writes of an earlier pass, because answers to writes count as events
// of a watch. A job that has ended costs no calls.
#pragma once

#include <map>
#include <memory>
#include <string>
#include <utility>

#include "controller/kube/jobs/agent_asks.h"
#include "controller/kube/jobs/job_cache.h"
#include "controller/kube/jobs/passes.h"

namespace muster::controller {

// `Cache`: a JobCache<Kind>. Its arguments after `events` are those of the constructor of the controller.
template <class Kind, class Cache>
class JobController {
 public:
  template <class... CacheArguments>
  JobController(const ControllerContext& context, WorkQueue::Options queue, CacheArguments&&... arguments)
      : context_(context),
        cache_(context.loop, context.client,
               {.changed = [this](const std::string& key) { passes_->Add(key, IsNew(key)); },
                .gone =
                    [this](const std::string& key, const Meta& job) {
                      passes_->Forget(key);
                      asks_.Forget(key);
                      context_.events.Forget(Kind::kResource.api, Kind::kName, job);
                    }},
               std::forward<CacheArguments>(arguments)...),
        asks_(context.loop,
              [this](const std::string& key, std::optional<AgentsSaid> said) {
                Known* known = cache_.Find(key);
                if (known != nullptr && TakeNews(std::move(said), &known->agents)) passes_->Add(key, false);
              }),
        passes_(std::make_shared<Passes>(context, queue, Kind::kName, [this](std::string key, Duration* spent) {
          return Reconcile(std::move(key), spent);
        })) {}
  virtual ~JobController() = default;
  JobController(const JobController&) = delete;
  JobController& operator=(const JobController&) = delete;

  void Begin() { cache_.Begin(); }
  bool synced() const { return cache_.synced(); }  // everything is listed; no pass begins before that

  JobCounts counts() const {
    JobCounts counts{.passes = passes_->counts(), .jobs_by_state = {}};
    for (const auto& [key, known] : cache_.jobs()) ++counts.jobs_by_state[Kind::StateOf(known.job)];
    return counts;
  }

 protected:
  using Job = typename Kind::Job;
  using Known = typename Kind::Known;
  using Decision = typename Kind::Decision;
  using SharedPlan = std::shared_ptr<const typename Kind::Plan>;
  template <class Result>
  using Awaitable = boost::asio::awaitable<Result>;

  // The plan of the job `key`, which is known. Aborted, Unavailable, FailedPrecondition: a later pass may succeed. Any
  // other error is for a person to correct, which wakes the job.
  virtual Awaitable<StatusOr<SharedPlan>> PlanOf(std::string key, const Job& job) = 0;
  // All actions of `decision` have been carried out. Null `plan`: it needed none.
  virtual Awaitable<Status> CarriedOut(std::string key, const Job& job, SharedPlan plan, const Decision& decision) = 0;

  void Record(const Job& job, const Notice& notice) {
    context_.events.Record(Kind::kResource.api, Kind::kName, job.meta, notice.warning, notice.reason, notice.message,
                           WallNow());
  }

  const ControllerContext context_;
  Cache cache_;

 private:
  // True if the job has no plan yet: its first pass goes before those of older jobs.
  bool IsNew(const std::string& key) {
    const Known* known = cache_.Find(key);
    return known != nullptr && known->plan == nullptr && !known->job.status.Finished();
  }

  Awaitable<Status> Reconcile(std::string key, Duration* spent) {
    const Known* known = cache_.Find(key);
    if (known == nullptr) co_return absl::OkStatus();
    const Job job = known->job;
    SharedPlan plan;
    Status unplanned = known->unreadable;
    if (unplanned.ok() && NeedsPlan(job, cache_.Of(job))) {
      auto planned = co_await PlanOf(key, job);
      unplanned = planned.status();
      if (planned.ok()) plan = *std::move(planned);
    }
    const TimePoint begun = MonotonicClock::now();
    const Decision decision = Decide(job, PlanOr(plan.get(), unplanned), cache_.Of(job), WallNow());
    *spent = MonotonicClock::now() - begun;
    if (job.suspend || decision.status.Finished()) {
      asks_.Forget(key);
    } else if (plan != nullptr) {
      asks_.Ask(key, WhomToAsk(*plan, cache_.Of(job)));
    }
    Status status = co_await CarryOut(job, decision);
    if (!unplanned.ok()) co_return MayPass(unplanned) ? unplanned : status;
    if (status.ok()) status = co_await CarriedOut(key, job, plan, decision);
    if (status.ok() || absl::IsUnavailable(status) || absl::IsAborted(status)) co_return status;
    const Status written = co_await CarryOut(job, DecideAfterRefusal(job, status, WallNow()));
    co_return written.ok() ? status : written;
  }

  static StatusOr<const typename Kind::Plan*> PlanOr(const typename Kind::Plan* plan, const Status& why) {
    if (!why.ok()) return why;
    return plan;
  }

  static bool MayPass(const Status& unplanned) {
    return absl::IsUnavailable(unplanned) || absl::IsAborted(unplanned) || absl::IsFailedPrecondition(unplanned);
  }

  Awaitable<Status> CarryOut(const Job& job, Decision decision) {
    const ActionOwner owner{Kind::kResource, Kind::kName, job.meta};
    std::optional<Json> status;
    if (!(decision.status == job.status)) status = StatusOf(owner, Kind::WriteStatus(decision.status));
    co_return co_await passes_->CarryOut(owner, decision, std::move(status), cache_);
  }

  AgentAsks asks_;
  std::shared_ptr<Passes> passes_;
};

}  // namespace muster::controller

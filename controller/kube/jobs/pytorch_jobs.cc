// SPDX-License-Identifier: Apache-2.0
#include "controller/kube/jobs/pytorch_jobs.h"

#include <algorithm>

#include "controller/kube/jobs/job_controller.h"
#include "controller/kube/jobs/pytorch_job_cache.h"

namespace muster::controller {

namespace {

const Resource* PodGroupsOf(const std::string& gang_scheduler) {
  if (gang_scheduler.empty()) return nullptr;
  return gang_scheduler == kVolcanoScheduler ? &kVolcanoPodGroups : &kPodGroups;
}

// True if pods of training-operator still run. New pods must work with them, so they are planned without the agent.
bool RunForeignPods(const Observed& observed) {
  return std::any_of(observed.pods.begin(), observed.pods.end(),
                     [](const ObservedPod& pod) { return StillRuns(pod) && !pod.made_here; });
}

}  // namespace

class PyTorchJobs::Impl final : public JobController<PyTorchJobKind, PyTorchJobCache> {
 public:
  Impl(const ControllerContext& context, Options options)
      : JobController(context, options.queue, options.ns, PodGroupsOf(options.plan.gang_scheduler)),
        options_(std::move(options.plan)) {}

 private:
  Awaitable<StatusOr<SharedPlan>> PlanOf(std::string key, const PyTorchJob& job) override {
    Known* known = cache_.Find(key);
    const bool with_agent = !RunForeignPods(cache_.Of(job));
    if (known->IsPlanned() && known->planned_with_agent == with_agent) co_return known->plan;
    PyTorchOptions options = options_;
    options.with_agent = with_agent;
    const auto whole = ReadPyTorchJob(known->whole.Unpack());
    if (!whole.ok()) co_return whole.status();
    auto plan = PlanPyTorchJob(*whole, options);
    if (!plan.ok()) co_return plan.status();
    if (known->HasNews()) {
      for (const Notice& notice : plan->notices) Record(job, notice);
    }
    known->plan = std::make_shared<const PyTorchPlan>(*std::move(plan));
    known->planned_generation = job.meta.generation;
    known->planned_with_agent = with_agent;
    co_return known->plan;
  }

  Awaitable<Status> CarriedOut(std::string key, const PyTorchJob& job, SharedPlan /*plan*/,
                               const PyTorchDecision& decision) override {
    Known* known = cache_.Find(key);
    const bool same = known != nullptr && known->job.meta.uid == job.meta.uid;
    if (same && decision.objects_made) known->objects_generation = job.meta.generation;
    if (same && job.suspend) known->objects_generation = -1;
    co_return absl::OkStatus();
  }

  const PyTorchOptions options_;
};

PyTorchJobs::PyTorchJobs(const ControllerContext& context, Options options)
    : impl_(std::make_unique<Impl>(context, std::move(options))) {}
PyTorchJobs::~PyTorchJobs() = default;
void PyTorchJobs::Begin() { impl_->Begin(); }
bool PyTorchJobs::synced() const { return impl_->synced(); }
JobCounts PyTorchJobs::counts() const { return impl_->counts(); }

}  // namespace muster::controller

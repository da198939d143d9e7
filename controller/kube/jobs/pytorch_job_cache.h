// SPDX-License-Identifier: Apache-2.0
// PyTorchJobs as a kind of job (job_cache.h), and their cache. Loop thread only.
#pragma once

#include <string>
#include <vector>

#include "controller/api/labels.h"
#include "controller/api/pytorch_job.h"
#include "controller/kube/jobs/job_cache.h"
#include "controller/plan/native_gang.h"
#include "controller/plan/pytorch_plan.h"
#include "controller/reconcile/pytorch_decide.h"

namespace muster::controller {

struct PyTorchJobKind {
  using Job = PyTorchJob;
  using Plan = PyTorchPlan;
  using Decision = PyTorchDecision;
  struct Known : KnownJob<Job, Plan> {
    bool planned_with_agent = true;
    int64_t objects_generation = -1;  // PyTorchPlan::objects exist as this generation plans them; -1: not known
  };
  static constexpr const char* kName = kPyTorchJobKind;
  static constexpr bool kKeepsWhole = true;  // its pods may have it planned again
  static constexpr const Resource& kResource = kPyTorchJobs;
  static std::string JobOf(const Meta& object) { return PyTorchJobOf(object); }
  static bool IsManaged(const Json& object) { return IsPyTorchJobManagedByMuster(object); }
  static StatusOr<Job> Read(const Json& object) { return ReadPyTorchJob(object); }
  static PyTorchJobStatus ReadStatus(const Json& status) { return ReadPyTorchJobStatus(status); }
  static Json WriteStatus(const PyTorchJobStatus& status) { return WritePyTorchJobStatus(status); }
  static void Trim(Job* job) {
    for (ReplicaSpec& replica : job->replicas) replica.pod_template = nullptr;
    job->meta.labels.clear();
    std::erase_if(job->meta.annotations, [](const auto& one) { return one.first != kGangAnnotation; });
  }
  static std::string StateOf(const Job& job) {  // the last condition
    return job.status.conditions.empty() ? "" : job.status.conditions.back().type;
  }
};

class PyTorchJobCache final : public JobCache<PyTorchJobKind> {
 public:
  // `pod_groups`: the gang scheduler's kind; null: none.
  PyTorchJobCache(boost::asio::io_context& loop, ApiClient& client, Events events, std::string ns,
                  const Resource* pod_groups)
      : JobCache(loop, client, std::move(events), std::move(ns), WatchedWith(pod_groups)) {}

 private:
  static std::vector<WatchedKind> WatchedWith(const Resource* pod_groups) {
    const std::string selector = fmt::format("{}={}", kOperatorNameLabel, kPyTorchOperator);
    std::vector<WatchedKind> watched = {{kPods, selector}, {kServices, selector}, {kAutoscalers, selector}};
    if (pod_groups != nullptr) watched.push_back({*pod_groups, ""});
    return watched;
  }
  void Complete(const PyTorchJob& job, Observed* observed) override {
    const Known* known = Find(KeyOf(job.meta.ns, job.meta.name));
    observed->has_objects = known != nullptr && known->objects_generation == job.meta.generation;
  }
  void Changed(const std::string&, const PyTorchJob&, const PyTorchJob*) override {}
};

}  // namespace muster::controller

// SPDX-License-Identifier: Apache-2.0
#include "controller/reconcile/taken_over.h"

#include <algorithm>

#include "base/text.h"
#include "controller/api/lenient.h"
#include "controller/reconcile/train_job_conditions.h"
#include "controller/reconcile/train_job_finished.h"

namespace muster::controller {
namespace {

std::optional<ObservedJobSet::End> TrueCondition(const Json& status, std::string_view type) {
  for (const Json& condition : ListField(status, "conditions")) {
    if (TextField(condition, "type") != type || TextField(condition, "status") != "True") continue;
    return ObservedJobSet::End{TextField(condition, "reason"), TextField(condition, "message")};
  }
  return std::nullopt;
}

std::string StateOf(const TrainJob& job, const TrainJobStatus& status) {
  if (job.suspend) return kSuspended;
  const bool runs = std::any_of(status.jobs.begin(), status.jobs.end(),
                                [](const JobsStatus& counts) { return counts.ready > 0 || counts.active > 0; });
  return runs ? "Running" : "Created";
}

}  // namespace

StatusOr<ObservedJobSet> ReadJobSet(const Json& object) {
  ObservedJobSet job_set;
  MUSTER_ASSIGN_OR_RETURN(job_set.meta, ReadMeta(object));
  job_set.meta.labels.clear();  // no decision reads them, and they may be long
  job_set.meta.annotations.clear();
  const Json& spec = PartOf(object, "spec");
  const Json& status = PartOf(object, "status");
  job_set.suspended = FlagField(spec, "suspend", false);
  job_set.completed = TrueCondition(status, "Completed");
  job_set.failed = TrueCondition(status, "Failed");
  job_set.restarts = CountField(status, "restarts");
  for (const Json& job : ListField(spec, "replicatedJobs")) job_set.jobs.push_back({TextField(job, "name")});
  for (const Json& counted : ListField(status, "replicatedJobsStatus")) {
    for (JobsStatus& jobs : job_set.jobs) {
      if (jobs.name != TextField(counted, "name")) continue;
      jobs.ready = CountField(counted, "ready");
      jobs.succeeded = CountField(counted, "succeeded");
      jobs.failed = CountField(counted, "failed");
      jobs.active = CountField(counted, "active");
      jobs.suspended = CountField(counted, "suspended");
    }
  }
  return job_set;
}

bool IsOf(const ObservedJobSet& job_set, const TrainJob& job) {
  return job_set.meta.IsControlledBy(job.meta) && job_set.meta.name == job.meta.name;
}

TrainJobDecision DecideTakenOver(const TrainJob& job, const ObservedJobSet& job_set, WallTime now) {
  TrainJobDecision decision;
  decision.reason = "Kubeflow Trainer has started it: its JobSet goes on";
  TrainJobStatus& status = decision.status = job.status;
  SetSuspended(job, &status, now);
  status.jobs = job_set.jobs;
  status.restarts = job_set.restarts;
  if (job_set.completed) {
    SetComplete(job, &status, now);
    return decision;
  }
  if (job_set.failed) {
    SetFailed(job, &status, job_set.failed->reason, job_set.failed->message, "", now);
    return decision;
  }
  using Kind = Action::Kind;
  if (EndAtDeadline(job, std::nullopt, now, &decision)) {
    decision.status_first = true;
    decision.actions.push_back({Kind::kDeleteJobSet, job_set.meta.name, job_set.meta.uid});
    return decision;
  }
  status.state = StateOf(job, status);
  status.message.clear();
  status.reason.clear();
  if (job.suspend != job_set.suspended) {
    const Kind kind = job.suspend ? Kind::kSuspendJobSet : Kind::kResumeJobSet;
    decision.actions.push_back({kind, job_set.meta.name, job_set.meta.uid});
  }
  return decision;
}

}  // namespace muster::controller

// SPDX-License-Identifier: Apache-2.0
#include "controller/reconcile/gang.h"

#include <set>

#include "base/text.h"
#include "controller/plan/native_gang.h"
#include "controller/reconcile/repair.h"
#include "controller/reconcile/train_job_conditions.h"

namespace muster::controller {
namespace {

constexpr char kPreempted[] = "PreemptionByScheduler";  // reason of the pods' condition DisruptionTarget

void Delete(const char* kind, std::string name, Steps* steps) {
  Action action{.kind = Action::Kind::kDeleteObject, .name = std::move(name)};
  action.object = [kind] { return Json{{"apiVersion", kGangApi}, {"kind", kind}}; };
  steps->actions.push_back(std::move(action));
}

}  // namespace

std::string PodGroupOfStart(const TrainJob& job, const TrainJobStatus& status) {
  const Condition* resumed = status.Find(kSuspended);
  const bool was = resumed != nullptr && !resumed->status;
  return PodGroupName(job.meta.name, status.attempt, was ? std::optional(resumed->since) : std::nullopt);
}

void AddCreation(const PlannedObject& planned, const TrainJob& job, TrainJobDecision* decision) {
  Action action = CreationOf(planned);
  if (planned.of_start) {
    action.name = PodGroupOfStart(job, decision->status);
    action.object = [&planned, name = action.name] {
      Json object = planned.object;
      object["metadata"]["name"] = name;
      return object;
    };
    if (decision->status.conditions != job.status.conditions) decision->status_first = true;
  }
  decision->actions.push_back(std::move(action));
}

std::string PreemptedGang(const std::vector<Placed>& all) {
  const ObservedPod* preempted = nullptr;
  for (const Placed& placed : all) {
    if (!placed.planned->in_gang || !placed.runs()) continue;
    for (const ObservedPod* pod : placed.pods) {
      if (StillRuns(*pod) && !pod->node.empty()) return "";
      if (preempted == nullptr && pod->meta.deleted && pod->disruption == kPreempted) preempted = pod;
    }
  }
  if (preempted == nullptr) return "";
  return fmt::format("the gang was preempted: pod {}: {}", preempted->meta.name, preempted->disruption_message);
}

void DeletePodGroups(const std::vector<const ObservedJob*>& jobs, Steps* steps) {
  std::set<std::string> names;
  for (const ObservedJob* job : jobs) {
    std::string name(job->meta.Annotation(kPodGroupAnnotation));
    if (!name.empty() && names.insert(name).second) Delete("PodGroup", std::move(name), steps);
  }
}

void SuspendJobs(const std::vector<Placed>& all, Steps* steps) {
  std::vector<const ObservedJob*> running;
  for (const Placed& placed : all) {
    if (placed.runs()) running.push_back(placed.job);
  }
  DeletePodGroups(running, steps);
  for (const ObservedJob* job : running) {
    steps->actions.push_back({Action::Kind::kSuspendJob, job->meta.name, job->meta.uid});
  }
}

void DeleteGang(const TrainJob& job, const std::vector<ObservedJob>& jobs, Steps* steps) {
  std::vector<const ObservedJob*> all;
  all.reserve(jobs.size());
  for (const ObservedJob& one : jobs) all.push_back(&one);
  const size_t before = steps->actions.size();
  DeletePodGroups(all, steps);
  if (steps->actions.size() > before) Delete("Workload", job.meta.name, steps);
}

}  // namespace muster::controller

// SPDX-License-Identifier: Apache-2.0
#include "controller/reconcile/pytorch_finished.h"

#include <algorithm>

#include "base/text.h"
#include "controller/api/reasons.h"
#include "controller/plan/native_gang.h"
#include "controller/reconcile/deciding.h"
#include "controller/reconcile/pytorch_conditions.h"
#include "controller/reconcile/pytorch_services.h"
#include "controller/reconcile/run_success.h"
#include "controller/reconcile/train_job_finished.h"

namespace muster::controller {
namespace {

// Deletes pods that `goes` selects, with their Services.
template <class Goes>
void Delete(const PyTorchJob& job, const Observed& observed, Goes goes, PyTorchDecision* decision) {
  std::vector<std::string> deleted;
  for (const ObservedPod& pod : observed.pods) {
    if (!pod.meta.IsControlledBy(job.meta) || !goes(pod)) continue;
    // The Service goes first: if the controller is killed between the two, the next one finds it by its pod.
    DeleteService(job, observed, pod.meta.name, &decision->actions);
    if (!pod.meta.deleted) {
      decision->actions.push_back({Action::Kind::kDeletePod, pod.meta.name, pod.meta.uid});
      deleted.push_back(pod.meta.name);
    }
  }
  if (!deleted.empty()) {
    decision->events.push_back(
        {false, reason::kSuccessfulDeletePod, fmt::format("Deleted pod: {}", Join(deleted, ", "))});
  }
}

void DeleteObject(std::string_view api_version, std::string_view kind, const Meta& job, PyTorchDecision* decision) {
  Action action{.kind = Action::Kind::kDeleteObject, .name = job.name};
  action.object = [type = Json{{"apiVersion", api_version}, {"kind", kind}}] { return type; };
  decision->actions.push_back(std::move(action));
}

// Deletes the objects of a gang of Kubernetes, which are not watched. A PodGroup holds the devices of its claims as
// long as it exists.
void DeleteGang(const PyTorchJob& job, PyTorchDecision* decision) {
  if (job.meta.Annotation(kGangAnnotation) != "native") return;
  DeleteObject(kGangApi, "PodGroup", job.meta, decision);
  DeleteObject(kGangApi, "Workload", job.meta, decision);
}

void DeletePodGroup(const PyTorchJob& job, const Observed& observed, PyTorchDecision* decision) {
  if (!observed.pod_group || observed.pod_group->meta.deleted || !observed.pod_group->meta.IsControlledBy(job.meta))
    return;
  DeleteObject(observed.pod_group->api_version, "PodGroup", job.meta, decision);
  decision->events.push_back(
      {false, reason::kSuccessfulDeletePodGroup, fmt::format("Deleted PodGroup: {}", job.meta.name)});
}

}  // namespace

void RemoveIdle(const PyTorchJob& job, const Replicas& replicas, PyTorchDecision* decision) {
  for (const Replica& replica : replicas.all) {
    if (!replica.idle || replica.pod == nullptr || !StillRuns(*replica.pod)) continue;
    decision->events.push_back(SucceededWithout(replica.name));
    if (job.clean != CleanPodPolicy::kNone) continue;
    decision->actions.push_back({Action::Kind::kDeletePod, replica.pod->meta.name, replica.pod->meta.uid});
    decision->status_first = false;
  }
}

void DeleteAll(const PyTorchJob& job, const Observed& observed, PyTorchDecision* decision) {
  Delete(
      job, observed, [](const ObservedPod&) { return true; }, decision);
  // Deletes also Services without a pod.
  for (const ObservedService& service : observed.services) {
    const bool has_pod = std::any_of(observed.pods.begin(), observed.pods.end(),
                                     [&](const ObservedPod& pod) { return pod.meta.name == service.meta.name; });
    if (!has_pod) DeleteService(job, observed, service.meta.name, &decision->actions);
  }
  DeletePodGroup(job, observed, decision);
  if (!job.status.Is("Suspended")) DeleteGang(job, decision);
  const bool scales = job.elastic && !job.elastic->metrics.empty();
  if (scales && !job.status.Is("Suspended")) {
    DeleteObject("autoscaling/v2", "HorizontalPodAutoscaler", job.meta, decision);
  }
}

void CleanUp(const PyTorchJob& job, const Observed& observed, WallTime now, PyTorchDecision* decision) {
  if (job.clean == CleanPodPolicy::kAll) {
    Delete(
        job, observed, [](const ObservedPod&) { return true; }, decision);
  } else if (job.clean == CleanPodPolicy::kRunning || IsPastLimit(decision->status)) {
    NamedCauses causes;
    for (const ObservedPod& pod : observed.pods) AddCauses(pod, &causes);
    const auto runs = [&job, &causes, now, decision](const ObservedPod& pod) {
      // The pod that reached the limit stays with its log: only its next start is prevented.
      const auto failed =
          std::find_if(pod.ends.begin(), pod.ends.end(), [](const ObservedEnd& end) { return end.waits_to_start; });
      if (job.clean == CleanPodPolicy::kNone && failed != pod.ends.end()) {
        EndPod(pod, failed->container, decision);
        return false;
      }
      if (const auto until = AwaitLog(pod, causes, now, decision)) {
        decision->LookAgain(*until);
        return false;
      }
      return pod.phase == "Running" || pod.phase == "Pending";
    };
    Delete(job, observed, runs, decision);
  } else {
    for (const ObservedPod& pod : observed.pods) {
      if (pod.meta.IsControlledBy(job.meta) && IsOutlasted(pod)) EndPod(pod, pod.decides, decision);
    }
  }
  DeletePodGroup(job, observed, decision);
  if (decision->status.completion_time && now < *decision->status.completion_time + kGangGoes)
    DeleteGang(job, decision);
  if (!job.ttl_seconds_after_finished || !decision->status.completion_time) return;
  const WallTime end = *decision->status.completion_time + std::chrono::seconds(*job.ttl_seconds_after_finished);
  if (now < end) return decision->LookAgain(end);
  decision->actions.push_back({Action::Kind::kDeleteOwner, job.meta.name, job.meta.uid});
}

}  // namespace muster::controller

// SPDX-License-Identifier: Apache-2.0
// The PodGroup of a PyTorchJob in a gang of Kubernetes, or under another gang scheduler. Source of the latter:
// training-operator v1.9, pkg/common/util/scheduler.go, pkg/core/job.go.
#include <algorithm>

#include "base/text.h"
#include "controller/api/lenient.h"
#include "controller/api/reasons.h"
#include "controller/plan/native_gang.h"
#include "controller/plan/pod_requests.h"
#include "controller/plan/pytorch_plan.h"

namespace muster::controller {
namespace {

// The requests of the first `members` pods, the master first.
StatusOr<Json> LeastResources(const PyTorchPlan& plan, const std::vector<Json>& templates, int members) {
  RequestSum requests;
  for (size_t i = 0; i < templates.size(); ++i) {
    const int pods = std::min(members, plan.replicas[i].count);
    MUSTER_RETURN_IF_ERROR(requests.Add(templates[i]["spec"], pods));
    members -= pods;
  }
  return requests.Resources();
}

}  // namespace

Status AddNativeGang(const PyTorchJob& job, std::vector<Json>* templates, PyTorchPlan* plan) {
  const ReplicaSpec* workers = job.Find(ReplicaType::kWorker);
  int least = job.AllReplicas();
  if (job.elastic && workers != nullptr) least -= std::max(0, workers->replicas - job.elastic->least);
  const int wanted = job.scheduling.min_available.value_or(least);
  const bool native = job.meta.Annotation(kGangAnnotation) == "native";
  if (native && (wanted < 1 || wanted > job.AllReplicas())) {
    return absl::InvalidArgumentError(
        fmt::format("spec.runPolicy.schedulingPolicy.minAvailable: {} is not between 1 and the number of replicas, {}, "
                    "so the job would never start",
                    wanted, job.AllReplicas()));
  }
  const GangOptions options{
      .least = wanted, .whole = wanted == job.AllReplicas(), .priority_class = job.scheduling.priority_class};
  MUSTER_ASSIGN_OR_RETURN(std::vector<PlannedObject> objects,
                          NativeGangOf(job.meta, kKubeflowApi, kPyTorchJobKind, options, templates));
  for (PlannedObject& planned : objects) plan->objects.push_back(std::move(planned));
  return absl::OkStatus();
}

Status AddPodGroup(const PyTorchJob& job, const PyTorchOptions& options, std::vector<Json>* templates,
                   PyTorchPlan* plan) {
  const bool volcano = options.gang_scheduler == kVolcanoScheduler;
  const SchedulingPolicy& policy = job.scheduling;
  Json spec = {{"minMember", policy.min_available.value_or(job.AllReplicas())}};
  if (policy.min_resources.is_object()) {
    spec["minResources"] = policy.min_resources;
  } else {
    MUSTER_ASSIGN_OR_RETURN(spec["minResources"], LeastResources(*plan, *templates, CountField(spec, "minMember")));
  }
  if (volcano) {
    PutText(spec, "queue", policy.queue);
    PutText(spec, "priorityClassName", policy.priority_class);
  } else if (policy.timeout_seconds) {
    spec["scheduleTimeoutSeconds"] = *policy.timeout_seconds;
  }
  Json metadata = {{"name", job.meta.name}};
  if (!job.meta.annotations.empty()) metadata["annotations"] = job.meta.annotations;
  for (size_t i = 0; i < templates->size(); ++i) {
    const ReplicaType type = plan->replicas[i].type;
    Json& pod_metadata = (*templates)[i]["metadata"];
    if (volcano) {
      pod_metadata["annotations"]["scheduling.k8s.io/group-name"] = job.meta.name;
      pod_metadata["annotations"]["volcano.sh/task-spec"] = ReplicaLabel(type);
    } else {
      pod_metadata["labels"]["scheduling.x-k8s.io/pod-group"] = job.meta.name;
    }
    Json& pod = (*templates)[i]["spec"];
    const std::string own = TextField(pod, "schedulerName");
    if (own.empty()) {
      pod["schedulerName"] = options.gang_scheduler;
    } else if (own != options.gang_scheduler) {
      plan->notices.push_back({reason::kSetPodTemplateSchedulerName,
                               fmt::format("{}.template.spec.schedulerName: {} stays, and gang scheduling is by {}: "
                                           "leave it out",
                                           ReplicaPath(type), own, options.gang_scheduler),
                               true});
    }
  }
  plan->waits_for_pod_group = volcano;
  plan->objects.push_back(
      {.object = {{"apiVersion", volcano ? "scheduling.volcano.sh/v1beta1" : "scheduling.x-k8s.io/v1alpha1"},
                  {"kind", "PodGroup"},
                  {"metadata", std::move(metadata)},
                  {"spec", std::move(spec)}},
       .if_there = PlannedObject::IfThere::kUpdate});
  return absl::OkStatus();
}

}  // namespace muster::controller

// SPDX-License-Identifier: Apache-2.0
#include "controller/plan/pod_group.h"

#include <algorithm>
#include <map>

#include "base/text.h"
#include "controller/api/labels.h"
#include "controller/api/lenient.h"
#include "controller/plan/placement.h"
#include "controller/plan/pod_fields.h"
#include "controller/plan/pod_requests.h"

namespace muster::controller {
namespace {

constexpr int kUsualTimeout = 60;  // seconds, the API's default

bool IsInitializer(const ReplicatedJob& of) {
  return of.step == Step::kDatasetInitializer || of.step == Step::kModelInitializer;
}

// {minMember, minResources}
StatusOr<Json> SizeOf(const Draft& draft, const std::vector<ReplicatedJob*>& gang) {
  int64_t members = 0;
  RequestSum requests;
  for (ReplicatedJob* of : gang) {
    const int64_t count = MembersOf(draft, *of);
    MUSTER_RETURN_IF_ERROR(requests.Add(PodSpec(of->job_template), count));
    members += count;
  }
  return Json{{"minMember", members}, {"minResources", requests.Resources()}};
}

Json PodGroup(std::string_view api, const Draft& draft, Json spec) {
  return {{"apiVersion", api},
          {"kind", "PodGroup"},
          {"metadata", {{"name", draft.job.meta.name}}},
          {"spec", std::move(spec)}};
}

// networkTopology of the PodGroup. Some documents use {topologyKey, networkPolicy} instead of {mode,
// highestTierAllowed}, or beside it: networkPolicy gives the mode, and topologyKey becomes an affinity of the pods.
Json Topology(const Json& volcano, const Draft& draft, const std::vector<ReplicatedJob*>& gang) {
  Json topology = MapField(volcano, "networkTopology");
  for (const char* name : {"topologyKey", "networkPolicy"}) {
    if (const Json* documented = FindField(volcano, name)) topology[name] = *documented;
  }
  if (const std::string policy = TextField(topology, "networkPolicy"); !policy.empty()) {
    topology["mode"] = policy == "Strict" ? "hard" : "soft";
  }
  if (const std::string key = TextField(topology, "topologyKey"); !key.empty()) {
    const bool required = TextField(topology, "mode") != "soft";
    for (ReplicatedJob* of : gang) {
      PlaceTogether(key, kJobSetNameLabel, draft.job.meta.name, required, &PodSpec(of->job_template));
    }
  }
  topology.erase("topologyKey");
  topology.erase("networkPolicy");
  return topology;
}

Status AddVolcano(const Json& volcano, const Json& metadata, const std::vector<ReplicatedJob*>& gang, Json spec,
                  Draft* draft) {
  if (const Json* queue = FindField(PartOf(metadata, "annotations"), kVolcanoQueueAnnotation)) {
    if (*queue == "") {
      return absl::InvalidArgumentError(fmt::format("runtime '{}': annotation {}: Volcano queue name must not be empty",
                                                    draft->runtime.meta.name, kVolcanoQueueAnnotation));
    }
    spec["queue"] = *queue;
  }
  if (Json topology = Topology(volcano, *draft, gang); !topology.empty()) spec["networkTopology"] = std::move(topology);
  for (ReplicatedJob* of : gang) {
    Json& pod = PodSpec(of->job_template);
    if (const Json* priority = FindField(pod, "priorityClassName")) spec["priorityClassName"] = *priority;
    if (FindField(pod, "schedulerName") == nullptr) pod["schedulerName"] = "volcano";
    PodTemplate(of->job_template)["metadata"]["annotations"]["scheduling.k8s.io/group-name"] = draft->job.meta.name;
  }
  draft->objects.push_back({.object = PodGroup("scheduling.volcano.sh/v1beta1", *draft, std::move(spec))});
  return absl::OkStatus();
}

void AddCoscheduling(const Json& coscheduling, const std::vector<ReplicatedJob*>& gang, Json spec, Draft* draft) {
  const Json* timeout = FindField(coscheduling, "scheduleTimeoutSeconds");
  spec["scheduleTimeoutSeconds"] = timeout == nullptr ? Json(kUsualTimeout) : *timeout;
  for (ReplicatedJob* of : gang) {
    PodTemplate(of->job_template)["metadata"]["labels"]["scheduling.x-k8s.io/pod-group"] = draft->job.meta.name;
  }
  draft->objects.push_back({.object = PodGroup("scheduling.x-k8s.io/v1alpha1", *draft, std::move(spec))});
}

}  // namespace

std::vector<ReplicatedJob*> PodsTogether(Draft* draft) {
  std::map<std::string, int> waves;  // by job, without initializers
  std::map<int, int64_t> pods;
  for (const ReplicatedJob& of : draft->jobs) {
    if (IsInitializer(of)) continue;
    int wave = 0;
    for (const Dependency& dependency : of.depends_on) {
      if (const auto other = waves.find(dependency.job); other != waves.end()) wave = std::max(wave, other->second + 1);
    }
    waves[of.name] = wave;
    pods[wave] += int64_t{of.replicas} * draft->pods.at(of.name);
  }
  const auto most =
      std::max_element(pods.begin(), pods.end(), [](const auto& a, const auto& b) { return a.second < b.second; });
  std::vector<ReplicatedJob*> gang;
  for (ReplicatedJob& of : draft->jobs) {
    const auto wave = waves.find(of.name);
    if (wave != waves.end() && wave->second == most->first) gang.push_back(&of);
  }
  return gang;
}

int64_t MembersOf(const Draft& draft, const ReplicatedJob& of) {
  const int pods = draft.pods.at(of.name);
  const bool elastic = draft.nodes.elastic && of.step == Step::kTrainer;
  return int64_t{of.replicas} * (elastic ? std::min(pods, draft.nodes.least) : pods);
}

Status AddPodGroup(const Json& metadata, Draft* draft) {
  const Json* volcano = FindField(draft->runtime.pod_group_policy, "volcano");
  const Json* coscheduling = FindField(draft->runtime.pod_group_policy, "coscheduling");
  if (volcano == nullptr && coscheduling == nullptr) return absl::OkStatus();
  const std::vector<ReplicatedJob*> gang = PodsTogether(draft);
  MUSTER_ASSIGN_OR_RETURN(Json spec, SizeOf(*draft, gang));
  if (spec["minMember"] == 0) return absl::OkStatus();
  if (volcano != nullptr) {
    MUSTER_RETURN_IF_ERROR(AddVolcano(*volcano, metadata, gang, std::move(spec), draft));
  } else {
    AddCoscheduling(*coscheduling, gang, std::move(spec), draft);
  }
  draft->objects.back().if_there = PlannedObject::IfThere::kUpdate;
  return absl::OkStatus();
}

}  // namespace muster::controller

// SPDX-License-Identifier: Apache-2.0
#include "controller/plan/native_gang.h"

#include <algorithm>

#include "base/quoted.h"
#include "base/text.h"
#include "controller/api/lenient.h"
#include "controller/plan/choice.h"
#include "controller/plan/elastic.h"
#include "controller/plan/pod_fields.h"
#include "controller/plan/pod_group.h"

namespace muster::controller {
namespace {

constexpr char kTemplate[] = "pods";  // the only podGroupTemplate of a Workload
constexpr size_t kMostClaims = 4;     // the API's limit
constexpr size_t kMostNameLetters = 63;
constexpr std::string_view kKueuePodSets = "kueue.x-k8s.io/podset-";  // annotations by which Kueue places pods

// A pod template of the group, and what messages call it.
struct Member {
  std::string name;
  Json* pod_template;
};

// What the annotations ask for.
struct Wish {
  std::string topology;
  std::vector<std::string> claims;
};

Status Wrong(const char* annotation, std::string_view why) {
  return absl::InvalidArgumentError(fmt::format("metadata.annotations.{}: {}", annotation, why));
}

// `gang`: what kGangAnnotation says; empty: nothing.
StatusOr<Wish> ReadWish(std::string_view topology, std::string_view claims, std::string_view gang) {
  for (const auto& [annotation, said] :
       {std::pair(kGangTopologyAnnotation, topology), std::pair(kGangClaimsAnnotation, claims)}) {
    if (said.empty() || !gang.empty()) continue;
    return Wrong(annotation,
                 fmt::format("{} is for a gang of Kubernetes; set {}: native, too", Quoted(said), kGangAnnotation));
  }
  Wish wish{.topology = std::string(topology), .claims = {}};
  if (claims.empty()) return wish;
  for (const std::string_view claim : Split(claims, ',')) wish.claims.emplace_back(Strip(claim));
  if (wish.claims.size() <= kMostClaims) return wish;
  return Wrong(kGangClaimsAnnotation, fmt::format("{} names {} claims, and a PodGroup has {} at most", Quoted(claims),
                                                  wish.claims.size(), kMostClaims));
}

// The value of `field` that all pods have; "": they have none.
StatusOr<std::string> OneOf(const std::vector<Member>& members, const char* field) {
  std::string first;
  for (const Member& member : members) {
    std::string own = TextField((*member.pod_template)["spec"], field);
    if (&member == &members.front()) first = own;
    if (own == first) continue;
    return Wrong(kGangAnnotation, fmt::format("{} has {} {}, and {} has {}; the pods of a group have the same",
                                              members.front().name, field, Quoted(first), member.name, Quoted(own)));
  }
  return first;
}

// The entry `name` of spec.resourceClaims of the pods that have one.
StatusOr<Json> ClaimOf(const std::vector<Member>& members, const std::string& name) {
  const Json* found = nullptr;
  for (const Member& member : members) {
    const Json* claim = FindNamed(std::as_const((*member.pod_template)["spec"]), "resourceClaims", name);
    if (claim == nullptr) continue;
    if (found == nullptr) found = claim;
    if (*claim == *found) continue;
    return Wrong(kGangClaimsAnnotation, fmt::format("resourceClaims of {} has another claim {} than the other pods",
                                                    member.name, Quoted(name)));
  }
  if (found != nullptr) return *found;
  return Wrong(kGangClaimsAnnotation,
               fmt::format("no pod of the group has {} in its resourceClaims; name a claim of the pods", Quoted(name)));
}

// What Workload and PodGroup have in common.
StatusOr<Json> PolicyOf(const std::vector<Member>& members, const Wish& wish, const GangOptions& options) {
  MUSTER_RETURN_IF_ERROR(OneOf(members, "schedulerName").status());
  MUSTER_ASSIGN_OR_RETURN(const std::string priority, OneOf(members, "priorityClassName"));
  Json policy = {{"schedulingPolicy", {{"gang", {{"minCount", options.least}}}}},
                 {"disruptionMode", options.whole ? "PodGroup" : "Pod"}};
  PutText(policy, "priorityClassName", options.priority_class.empty() ? priority : options.priority_class);
  if (!wish.topology.empty()) {
    policy["schedulingConstraints"]["topology"] = Json::array({{{"key", wish.topology}}});
  }
  for (const std::string& name : wish.claims) {
    MUSTER_ASSIGN_OR_RETURN(Json claim, ClaimOf(members, name));
    policy["resourceClaims"].push_back(std::move(claim));
  }
  return policy;
}

// Kueue places the pods of a job in its queue that has such annotations.
Status CheckKueue(const Meta& job, const std::vector<Member>& members, const Wish& wish) {
  if (job.Label(kQueueLabel).empty() || wish.topology.empty()) return absl::OkStatus();
  for (const Member& member : members) {
    for (const auto& [key, value] : MapField((*member.pod_template)["metadata"], "annotations").items()) {
      if (!key.starts_with(kKueuePodSets)) continue;
      return Wrong(kGangTopologyAnnotation, fmt::format("{} has the annotation {}, by which Kueue places the pods; "
                                                        "remove one of them",
                                                        member.name, key));
    }
  }
  return absl::OkStatus();
}

StatusOr<std::vector<PlannedObject>> ObjectsOf(const Meta& job, std::string_view api, std::string_view kind,
                                               const std::string& group, Json policy) {
  Json reference = {{"apiGroup", api.substr(0, api.find('/'))}, {"kind", kind}, {"name", job.name}};
  Json pods = policy;
  pods["name"] = kTemplate;
  Json workload = {
      {"apiVersion", kGangApi},
      {"kind", "Workload"},
      {"metadata", {{"name", job.name}}},
      {"spec", {{"controllerRef", std::move(reference)}, {"podGroupTemplates", Json::array({std::move(pods)})}}}};
  policy["podGroupTemplateRef"]["workload"] = {{"workloadName", job.name}, {"podGroupTemplateName", kTemplate}};
  Json pod_group = {
      {"apiVersion", kGangApi}, {"kind", "PodGroup"}, {"metadata", {{"name", group}}}, {"spec", std::move(policy)}};
  std::vector<PlannedObject> objects(2);
  objects[0].object = std::move(workload);
  objects[1].object = std::move(pod_group);
  return objects;
}

// The fields of a Workload or a PodGroup that PolicyOf() makes.
const Json& PolicyIn(const Json& object) {
  const Json& spec = PartOf(object, "spec");
  const Json& templates = ListField(spec, "podGroupTemplates");
  return templates.empty() ? spec : templates.front();
}

}  // namespace

StatusOr<bool> WantsNativeGang(const TrainJob& job, const Runtime& runtime) {
  MUSTER_ASSIGN_OR_RETURN(const std::string_view said, ChoiceOf(job, runtime, kGangAnnotation, "native", "off"));
  if (said != "native" || runtime.pod_group_policy.is_null() || runtime.pod_group_policy.empty()) {
    return said == "native";
  }
  return Wrong(kGangAnnotation, fmt::format("native, and runtime '{}' has a podGroupPolicy for another scheduler; "
                                            "remove one of them, or annotate the TrainJob with {}: \"off\"",
                                            runtime.meta.name, kGangAnnotation));
}

StatusOr<bool> WantsNativeGang(const Meta& pytorch_job) {
  MUSTER_ASSIGN_OR_RETURN(const std::string_view said, ChoiceOf(pytorch_job, kGangAnnotation, "native", "off"));
  return said == "native";
}

StatusOr<std::set<std::string>> AddNativeGang(Draft* draft) {
  const TrainJob& job = draft->job;
  const auto said = [&](const char* annotation) {
    const std::string_view own = job.meta.Annotation(annotation);
    return own.empty() ? draft->runtime.meta.Annotation(annotation) : own;
  };
  MUSTER_ASSIGN_OR_RETURN(const Wish wish,
                          ReadWish(said(kGangTopologyAnnotation), said(kGangClaimsAnnotation), said(kGangAnnotation)));
  std::set<std::string> names;
  if (!draft->native_gang) return names;
  int64_t least = 0;
  std::vector<Member> members;
  for (ReplicatedJob* of : PodsTogether(draft)) {
    least += MembersOf(*draft, *of);
    members.push_back({fmt::format("job '{}'", of->name), &PodTemplate(of->job_template)});
    names.insert(of->name);
  }
  if (least == 0) return std::set<std::string>();
  MUSTER_RETURN_IF_ERROR(CheckKueue(job.meta, members, wish));
  MUSTER_ASSIGN_OR_RETURN(Json policy, PolicyOf(members, wish, {.least = least, .whole = !draft->nodes.elastic}));
  const std::string group = PodGroupName(job.meta.name, 0, std::nullopt);
  MUSTER_ASSIGN_OR_RETURN(std::vector<PlannedObject> objects,
                          ObjectsOf(job.meta, kTrainerApi, "TrainJob", group, std::move(policy)));
  objects.back().of_start = true;
  for (PlannedObject& planned : objects) {
    planned.if_there = PlannedObject::IfThere::kReplace;
    draft->objects.push_back(std::move(planned));
  }
  for (const std::string& name : names) PutInPodGroup(group, &JobNamed(*draft, name)->job_template);
  return names;
}

StatusOr<std::vector<PlannedObject>> NativeGangOf(const Meta& pytorch_job, std::string_view api, std::string_view kind,
                                                  const GangOptions& options, std::vector<Json>* templates) {
  MUSTER_ASSIGN_OR_RETURN(const Wish wish, ReadWish(pytorch_job.Annotation(kGangTopologyAnnotation),
                                                    pytorch_job.Annotation(kGangClaimsAnnotation),
                                                    pytorch_job.Annotation(kGangAnnotation)));
  MUSTER_ASSIGN_OR_RETURN(const bool native, WantsNativeGang(pytorch_job));
  if (!native) return std::vector<PlannedObject>();
  std::vector<Member> members;
  for (Json& pod_template : *templates) {
    members.push_back({fmt::format("template {}", members.size()), &pod_template});
  }
  MUSTER_RETURN_IF_ERROR(CheckKueue(pytorch_job, members, wish));
  MUSTER_ASSIGN_OR_RETURN(Json policy, PolicyOf(members, wish, options));
  for (Json& pod_template : *templates) {
    pod_template["spec"]["schedulingGroup"] = {{"podGroupName", pytorch_job.name}};
  }
  return ObjectsOf(pytorch_job, api, kind, pytorch_job.name, std::move(policy));
}

std::string PodGroupName(std::string_view train_job, int attempt, std::optional<WallTime> resumed) {
  std::string name = fmt::format("{}-{}", train_job, attempt);
  if (resumed) {
    name += fmt::format("-{}", std::chrono::floor<std::chrono::seconds>(*resumed).time_since_epoch().count());
  }
  return ShortName(name, kMostNameLetters);
}

void PutInPodGroup(const std::string& name, Json* job) {
  (*job)["metadata"]["annotations"][kPodGroupAnnotation] = name;
  PodSpec(*job)["schedulingGroup"] = {{"podGroupName", name}};
}

Json WorkloadIn(const std::vector<PlannedObject>& objects) {
  for (const PlannedObject& planned : objects) {
    if (TextField(planned.object, "kind") != "Workload") continue;
    Json workload = planned.object;
    workload["metadata"].erase("ownerReferences");
    return workload;
  }
  return {};
}

Status CheckGangAnswer(const Json& asked, const StatusOr<Json>& answer) {
  if (absl::IsNotFound(answer.status())) {
    return absl::FailedPreconditionError(fmt::format(
        "metadata.annotations.{}: native: the cluster does not serve {} of {}: Kubernetes 1.36 does with the feature "
        "gates "
        "GenericWorkload and GangScheduling and the API server's flag --runtime-config={}=true; enable them, or remove "
        "the annotation ({})",
        kGangAnnotation, TextField(asked, "kind"), kGangApi, kGangApi, Message(answer.status())));
  }
  if (!answer.ok()) return answer.status();
  static constexpr struct {
    const char *field, *annotation, *gate;
  } kGated[] = {{"schedulingConstraints", kGangTopologyAnnotation, "TopologyAwareWorkloadScheduling"},
                {"resourceClaims", kGangClaimsAnnotation, "DRAWorkloadResourceClaims"}};
  for (const auto& gated : kGated) {
    if (PartOf(PolicyIn(asked), gated.field).empty() || !PartOf(PolicyIn(*answer), gated.field).empty()) continue;
    return absl::FailedPreconditionError(fmt::format(
        "metadata.annotations.{}: the cluster ignores {} of {}: its feature gate {} is off; enable it, or remove the "
        "annotation",
        gated.annotation, gated.field, kGangApi, gated.gate));
  }
  return absl::OkStatus();
}

bool HoldsGang(const Json& found, const Json& planned) {
  const Json& there = PolicyIn(found);
  const Json& wanted = PolicyIn(planned);
  return std::all_of(wanted.items().begin(), wanted.items().end(), [&there](const auto& item) {
    const std::string& key = item.key();
    return key == "disruptionMode" || key == "priorityClassName" || PartOf(there, key.c_str()) == item.value();
  });
}

}  // namespace muster::controller

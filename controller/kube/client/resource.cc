// SPDX-License-Identifier: Apache-2.0
#include "controller/kube/client/resource.h"

#include "base/text.h"
#include "http/percent.h"

namespace muster::controller {

std::string PathOf(const Resource& resource, std::string_view ns, std::string_view name, std::string_view subresource) {
  std::string path = fmt::format("/{}/{}", resource.api.find('/') == std::string::npos ? "api" : "apis", resource.api);
  if (resource.namespaced && !ns.empty()) path += fmt::format("/namespaces/{}", http::PercentEncode(ns));
  path += fmt::format("/{}", resource.plural);
  if (!name.empty()) path += fmt::format("/{}", http::PercentEncode(name));
  if (!subresource.empty()) path += fmt::format("/{}", subresource);
  return path;
}

LeftOut UnreadOf(const Resource& resource, int below) {
  static constexpr JsonPlace kAny[] = {{"managedFields", 2}};
  // Of containers: spec.containers[] of a pod, spec.template.spec.containers[] of a Job.
  static constexpr JsonPlace kPod[] = {{"managedFields", 2}, {"env", 4},  {"envFrom", 4},
                                       {"command", 4},       {"args", 4}, {"volumeMounts", 4}};
  static constexpr JsonPlace kJob[] = {{"managedFields", 2}, {"env", 6},  {"envFrom", 6},
                                       {"command", 6},       {"args", 6}, {"volumeMounts", 6}};
  static constexpr JsonPlace kData[] = {{"managedFields", 2}, {"data", 1}, {"binaryData", 1}};
  if (resource == kConfigMaps) return {kData, below};
  if (resource == kPods) return {kPod, below};
  if (resource == kJobs) return {kJob, below};
  return {kAny, below};
}

bool IsInProtobuf(const Resource& resource) { return resource == kPods || resource == kJobs; }

StatusOr<Resource> ResourceOf(const Json& object) {
  const std::string api = TextField(object, "apiVersion"), kind = TextField(object, "kind");
  if (api == "v1" && kind == "ConfigMap") return kConfigMaps;
  if (api == "v1" && kind == "Secret") return kSecrets;
  if (api == "v1" && kind == "Service") return kServices;
  if (api == "v1" && kind == "PersistentVolumeClaim") return kClaims;
  if (api == "batch/v1" && kind == "Job") return kJobs;
  if (api == "autoscaling/v2" && kind == "HorizontalPodAutoscaler") return kAutoscalers;
  if (kind == "PodGroup") {
    for (const Resource& groups : {kPodGroups, kVolcanoPodGroups, kGangPodGroups}) {
      if (api == groups.api) return groups;
    }
  }
  if (api == kWorkloads.api && kind == "Workload") return kWorkloads;
  return absl::UnimplementedError(fmt::format("{} {}: no action makes such an object", api, kind));
}

}  // namespace muster::controller

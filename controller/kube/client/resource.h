// SPDX-License-Identifier: Apache-2.0
// Kinds of objects and their paths on an API server. Pure.
#pragma once

#include <string>
#include <string_view>

#include "base/json_fields.h"
#include "base/status.h"

namespace muster::controller {

// A kind of object as it appears in URLs: group, version and plural.
struct Resource {
  std::string api;     // "v1", "batch/v1", "trainer.kubeflow.org/v1alpha1"
  std::string plural;  // "pods"
  bool namespaced = true;
  // True: a cluster may not know the kind. If it does not at the start, an informer reports an empty list.
  bool optional = false;
  bool operator==(const Resource&) const = default;
};

// "/apis/batch/v1/namespaces/team/jobs/train/status". `ns`: for namespaced kinds; empty: all namespaces. `name` and
// `subresource` may be empty. `ns` and `name` are percent-encoded, so they cannot lead to another path.
std::string PathOf(const Resource& resource, std::string_view ns, std::string_view name = "",
                   std::string_view subresource = "");

// The members that no code reads in the objects of lists and watches: most of their bytes. They are not stored.
// `below`: as in LeftOut: how many levels of JSON lie around an object.
LeftOut UnreadOf(const Resource& resource, int below);

// The objects of lists and watches are read from protobuf (protobuf_fields.h).
bool IsInProtobuf(const Resource& resource);

// The kinds that Muster uses.
inline const Resource kTrainJobs{"trainer.kubeflow.org/v1alpha1", "trainjobs"};
inline const Resource kTrainingRuntimes{"trainer.kubeflow.org/v1alpha1", "trainingruntimes"};
inline const Resource kClusterTrainingRuntimes{"trainer.kubeflow.org/v1alpha1", "clustertrainingruntimes", false};
inline const Resource kPyTorchJobs{"kubeflow.org/v1", "pytorchjobs"};
inline const Resource kJobs{"batch/v1", "jobs"};
inline const Resource kPods{"v1", "pods"};
inline const Resource kServices{"v1", "services"};
inline const Resource kConfigMaps{"v1", "configmaps"};
inline const Resource kSecrets{"v1", "secrets"};
inline const Resource kJobSets{"jobset.x-k8s.io/v1alpha2", "jobsets", true, true};
inline const Resource kAutoscalers{"autoscaling/v2", "horizontalpodautoscalers"};
inline const Resource kValidatingWebhooks{"admissionregistration.k8s.io/v1", "validatingwebhookconfigurations", false};
inline const Resource kMutatingWebhooks{"admissionregistration.k8s.io/v1", "mutatingwebhookconfigurations", false};
inline const Resource kEvents{"v1", "events"};
inline const Resource kLeases{"coordination.k8s.io/v1", "leases"};
inline const Resource kTokenReviews{"authentication.k8s.io/v1", "tokenreviews", false};
inline const Resource kAccessReviews{"authorization.k8s.io/v1", "subjectaccessreviews", false};
inline const Resource kClaims{"v1", "persistentvolumeclaims"};
inline const Resource kPodGroups{"scheduling.x-k8s.io/v1alpha1", "podgroups"};
inline const Resource kVolcanoPodGroups{"scheduling.volcano.sh/v1beta1", "podgroups"};
inline const Resource kWorkloads{"scheduling.k8s.io/v1alpha2", "workloads"};  // these two are Kubernetes' own
inline const Resource kGangPodGroups{"scheduling.k8s.io/v1alpha2", "podgroups"};

// The Resource of an object of a plan, by its apiVersion and kind. Unimplemented: Muster creates no such objects.
StatusOr<Resource> ResourceOf(const Json& object);

}  // namespace muster::controller

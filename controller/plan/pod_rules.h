// SPDX-License-Identifier: Apache-2.0
// What the API server refuses in a pod, as far as the pod itself shows it, beyond the kinds of fields
// (api/pod_template.h). A plan that breaks such a rule would begin, and its pods would never be created. Pure;
// untrusted input. Source: Kubernetes, pkg/apis/core/validation.
//
// A missing image is not checked: webhooks of a cluster may set it.
#pragma once

#include <string_view>

#include "base/json_fields.h"
#include "base/status.h"

namespace muster::controller {

enum class PodOwner { kItself, kJob };  // kJob: restartPolicy must not be Always

// `pod_template`: a PodTemplateSpec that CheckPodTemplate has passed. InvalidArgument: "PATH.spec...: what is wrong".
// Checks: labels and nodeSelector; names of containers and volumes; dnsPolicy, imagePullPolicy,
// terminationMessagePolicy and protocols; variables; resources; volumes and their mounts.
Status CheckPodRules(const Json& pod_template, PodOwner owner, std::string_view path);

}  // namespace muster::controller

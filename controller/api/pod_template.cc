// SPDX-License-Identifier: Apache-2.0
#include "controller/api/pod_template.h"

#include <set>
#include <string>

#include "base/text.h"
#include "controller/api/quantity.h"

namespace muster::controller {
namespace {

constexpr int kMostPort = 65535;

// Names of fields that Kubernetes has and nobody here reads.
constexpr std::string_view kOtherJobFields =
    "backoffLimitPerIndex managedBy manualSelector maxFailedIndexes podReplacementPolicy selector successPolicy "
    "suspend";
constexpr std::string_view kOtherPodFields =
    "automountServiceAccountToken dnsConfig dnsPolicy enableServiceLinks ephemeralContainers hostAliases hostIPC "
    "hostPID hostUsers hostnameOverride nodeName os overhead preemptionPolicy priority readinessGates resourceClaims "
    "resources runtimeClassName schedulingGroup serviceAccount setHostnameAsFQDN shareProcessNamespace "
    "topologySpreadConstraints";
constexpr std::string_view kOtherContainerFields =
    "imagePullPolicy lifecycle livenessProbe readinessProbe resizePolicy restartPolicyRules startupProbe stdin "
    "stdinOnce terminationMessagePath terminationMessagePolicy tty volumeDevices";

// Only of a whole template: a part of one may have directives of a merge, such as $patch.
void NoOthers(const Fields& object, Extent extent, std::string_view others = "") {
  if (extent == Extent::kWhole) object.NoOthers(others);
}

// The objects of a list. Complains unless each has a name of its own.
std::vector<Fields> Named(Fields& object, const char* list) {
  std::vector<Fields> items = object.Objects(list);
  std::set<std::string> names;
  for (Fields& item : items) {
    const std::string name = item.NeedText("name");
    if (!name.empty() && !names.insert(name).second) {
      item.Wrong("name", name, "is there twice; give each its own name");
    }
  }
  return items;
}

void CheckMetadata(Fields metadata) {
  metadata.TextMap("labels");
  metadata.TextMap("annotations");
}

void CheckContainer(Fields& container, Extent extent) {
  for (const char* name : {"image", "workingDir", "restartPolicy"}) container.Text(name);
  container.Texts("command");
  container.Texts("args");
  CheckEnv(container, "env");
  container.Objects("envFrom");
  for (Fields& port : container.Objects("ports")) {
    const auto number = port.Int("containerPort", 1, kMostPort);
    if (!number && extent == Extent::kWhole) port.Wrong("containerPort", "it is missing");
    port.Text("name");
    port.Text("protocol");
  }
  for (Fields& mount : container.Objects("volumeMounts")) {
    mount.NeedText("mountPath");
    if (extent == Extent::kWhole) mount.NeedText("name");
  }
  CheckResources(container.Object("resources"));
  container.Object("securityContext");
  NoOthers(container, extent, kOtherContainerFields);
}

void CheckPodSpec(Fields spec, Extent extent) {
  for (const char* name : {"serviceAccountName", "subdomain", "hostname", "priorityClassName", "schedulerName"}) {
    spec.Text(name);
  }
  spec.Word("restartPolicy", {"Always", "OnFailure", "Never"});
  spec.TextMap("nodeSelector");
  spec.Flag("hostNetwork", false);
  spec.Number("terminationGracePeriodSeconds", 0);
  spec.Number("activeDeadlineSeconds", 1);
  for (const char* name : {"affinity", "securityContext"}) spec.Object(name);
  for (const char* name : {"tolerations", "imagePullSecrets"}) spec.Objects(name);
  Named(spec, "schedulingGates");
  Named(spec, "volumes");
  for (Fields& container : Named(spec, "initContainers")) CheckContainer(container, extent);
  std::vector<Fields> containers = Named(spec, "containers");
  for (Fields& container : containers) CheckContainer(container, extent);
  if (containers.empty() && extent == Extent::kWhole) {
    spec.Wrong("containers", "it is missing; a pod needs a container");
  }
  NoOthers(spec, extent, kOtherPodFields);
}

// The object in field `name`. Complains if a whole template lacks it.
Fields Inner(Fields& object, const char* name, Extent extent) {
  Fields inner = object.Object(name);
  if (!inner && extent == Extent::kWhole) object.Wrong(name, "it is missing");
  return inner;
}

}  // namespace

void CheckEnv(Fields& object, const char* name) {
  for (Fields& variable : Named(object, name)) {
    variable.Text("value");
    Fields source = variable.Object("valueFrom");
    for (const char* kind : {"fieldRef", "resourceFieldRef", "configMapKeyRef", "secretKeyRef"}) source.Object(kind);
  }
}

void CheckQuantities(Fields& object, const char* name) {
  const Json* amounts = object.Find(name);
  object.Object(name);
  if (amounts == nullptr || !amounts->is_object()) return;
  const std::string path = object.PathOf(name);
  for (const auto& [resource, amount] : amounts->items()) {
    auto quantity = ReadQuantity(amount);
    const std::string amount_path = PathOf(path, resource);
    if (!quantity.ok()) {
      object.complaints()->Wrong(amount_path, Message(quantity.status()));
    } else if (*quantity < Quantity()) {
      object.complaints()->Wrong(amount_path, amount, "is less than 0");
    }
  }
}

void CheckResources(Fields resources) {
  CheckQuantities(resources, "requests");
  CheckQuantities(resources, "limits");
  Named(resources, "claims");
}

void CheckJobTemplate(Fields job_template, Extent extent) {
  CheckMetadata(job_template.Object("metadata"));
  Fields spec = Inner(job_template, "spec", extent);
  for (const char* name : {"parallelism", "completions", "backoffLimit", "ttlSecondsAfterFinished"}) spec.Int(name, 0);
  spec.Number("activeDeadlineSeconds", 1);
  spec.Word("completionMode", {"Indexed", "NonIndexed"});
  spec.Object("podFailurePolicy");
  CheckPodTemplate(Inner(spec, "template", extent), extent);
  NoOthers(job_template, extent);
  NoOthers(spec, extent, kOtherJobFields);
}

void CheckPodTemplate(Fields pod_template, Extent extent) {
  CheckMetadata(pod_template.Object("metadata"));
  CheckPodSpec(Inner(pod_template, "spec", extent), extent);
  NoOthers(pod_template, extent);
}

Status CheckedJobTemplate(const Json& job_template, std::string_view path) {
  Complaints complaints;
  CheckJobTemplate(Fields(&job_template, std::string(path), &complaints), Extent::kWhole);
  return complaints.status();
}

}  // namespace muster::controller

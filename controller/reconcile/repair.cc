// SPDX-License-Identifier: Apache-2.0
#include "controller/reconcile/repair.h"

#include <algorithm>
#include <functional>

#include "base/text.h"
#include "controller/api/lenient.h"
#include "controller/api/quantity.h"
#include "controller/api/reasons.h"

namespace muster::controller {
namespace {

bool SameAmount(const Json& one, const Json& other) {
  const auto a = ReadQuantity(one), b = ReadQuantity(other);
  return a.ok() && b.ok() && *a == *b;
}

// {"data": {"ca.crt": 12345}} of a ConfigMap.
Json DigestsOf(const Json& config_map) {
  Json digests = Json::object();
  for (const auto& [key, value] : PartOf(config_map, "data").items()) {
    if (value.is_string()) digests[key] = std::hash<std::string>()(value.get_ref<const std::string&>());
  }
  return {{"data", std::move(digests)}};
}

}  // namespace

Action CreationOf(const PlannedObject& planned) {
  Action action{.kind = Action::Kind::kCreateObject, .name = NameOf(planned.object)};
  action.object = [&planned] { return planned.object; };
  action.if_there = planned.if_there;
  action.fill = planned.fill;
  return action;
}

void SettleService(const Json& planned, const Meta& job, const std::vector<ObservedService>& services, Steps* steps) {
  if (planned.is_null()) return;
  const std::string name = NameOf(planned);
  const auto ours = std::find_if(services.begin(), services.end(), [&](const ObservedService& service) {
    return service.meta.name == name && service.meta.IsControlledBy(job);
  });
  if (ours == services.end()) {
    Action action{.kind = Action::Kind::kCreateService, .name = name};
    action.object = [&planned] { return planned; };
    steps->actions.push_back(std::move(action));
  } else if (!ours->reaches_pods && !ours->meta.deleted) {
    steps->actions.push_back({.kind = Action::Kind::kDeleteService, .name = name, .uid = ours->meta.uid});
  }
}

bool Holds(const Json& found, const Json& planned) {
  if (planned.is_object()) {
    return std::all_of(planned.items().begin(), planned.items().end(), [&found](const auto& item) {
      return item.key() == "ownerReferences" || item.value().empty() ||
             Holds(PartOf(found, item.key().c_str()), item.value());
    });
  }
  if (planned.is_array()) {
    return found.is_array() && std::equal(found.begin(), found.end(), planned.begin(), planned.end(), Holds);
  }
  return found == planned || SameAmount(found, planned);
}

bool IsWrong(const PlannedObject& planned, const Meta& job, const std::vector<ObservedObject>* there) {
  const std::string kind = TextField(planned.object, "kind"), name = NameOf(planned.object);
  if (there == nullptr || (kind != kConfigMapKind && kind != kAutoscalerKind)) return false;
  const auto found = std::find_if(there->begin(), there->end(), [&](const ObservedObject& object) {
    return object.kind == kind && object.meta.name == name;
  });
  if (found == there->end() || !found->meta.IsControlledBy(job)) return true;
  // One that is being deleted is created again when it is gone. What may not be changed stays as it is.
  if (found->meta.deleted || planned.if_there != PlannedObject::IfThere::kUpdate) return false;
  const Json fields = found->fields.Unpack();
  return !(kind == kConfigMapKind ? Holds(fields, DigestsOf(planned.object)) : Holds(fields, planned.object));
}

bool IsMounted(const PlannedObject& planned, const std::vector<ObservedPod>& pods) {
  return planned.fill != PlannedObject::Fill::kNothing &&
         std::any_of(pods.begin(), pods.end(), [](const ObservedPod& pod) { return StillRuns(pod) && pod.ran; });
}

void MakeSecretAgain(const PlannedObject& planned, const std::vector<ObservedPod>& pods, Steps* steps) {
  if (planned.fill == PlannedObject::Fill::kNothing) return;
  const std::string name = NameOf(planned.object);
  const std::string missing = fmt::format("secret \"{}\" not found", name);  // kubelet: pkg/kubelet/volumemanager
  const bool is_missed = std::any_of(pods.begin(), pods.end(), [&missing](const ObservedPod& pod) {
    return StillRuns(pod) && !pod.ran && pod.event.message.find(missing) != std::string::npos;
  });
  if (!is_missed) return;
  steps->actions.push_back(CreationOf(planned));
  steps->events.push_back({true, reason::kSecretLost,
                           fmt::format("Secret {} was deleted: it is created again, with the same content", name)});
}

StatusOr<ObservedObject> ReadObject(const Json& object) {
  ObservedObject read{.kind = TextField(object, "kind"), .meta = {}, .fields = {}};
  MUSTER_ASSIGN_OR_RETURN(read.meta, ReadMeta(object));
  read.meta.annotations.clear();
  if (read.kind == kConfigMapKind) read.fields = PackedJson(DigestsOf(object));
  if (read.kind != kAutoscalerKind) return read;
  const Json& metadata = PartOf(object, "metadata");
  Json fields = {
      {"apiVersion", TextField(object, "apiVersion")}, {"kind", read.kind}, {"spec", PartOf(object, "spec")}};
  for (const char* name : {"name", "namespace", "labels", "annotations"}) {
    fields["metadata"][name] = PartOf(metadata, name);
  }
  read.fields = PackedJson(fields);
  return read;
}

}  // namespace muster::controller

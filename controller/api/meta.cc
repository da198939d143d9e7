// SPDX-License-Identifier: Apache-2.0
#include "controller/api/meta.h"

#include <algorithm>

#include "base/iso_time.h"
#include "base/text.h"
#include "controller/api/fields.h"

namespace muster::controller {
namespace {

std::string_view ValueOf(const std::map<std::string, std::string>& texts, std::string_view key) {
  const auto found = texts.find(std::string(key));
  return found == texts.end() ? std::string_view() : found->second;
}

std::optional<WallTime> Time(Fields& fields, const char* name) {
  const std::string text = fields.Text(name);
  if (text.empty()) return std::nullopt;
  auto time = ParseWallTime(text);
  if (time.ok()) return *time;
  fields.Wrong(name, Message(time.status()));
  return std::nullopt;
}

}  // namespace

std::string_view Meta::Label(std::string_view key) const { return ValueOf(labels, key); }

std::string_view Meta::Annotation(std::string_view key) const { return ValueOf(annotations, key); }

const OwnerReference* Meta::Controller() const {
  const auto found = std::find_if(owners.begin(), owners.end(), [](const auto& owner) { return owner.controller; });
  return found == owners.end() ? nullptr : &*found;
}

bool Meta::IsControlledBy(const Meta& owner) const {
  const OwnerReference* controller = Controller();
  return controller != nullptr && controller->uid == owner.uid;
}

StatusOr<Meta> ReadMeta(const Json& object) {
  Complaints complaints;
  Fields root(&object, "", &complaints);
  if (!root) complaints.Wrong("", "null is not an object");
  Fields fields = root.Object("metadata");
  Meta meta;
  meta.name = fields.NeedText("name");
  meta.ns = fields.Text("namespace");
  meta.uid = fields.Text("uid");
  meta.resource_version = fields.Text("resourceVersion");
  meta.generation = fields.Number("generation", 0).value_or(0);
  meta.created = Time(fields, "creationTimestamp");
  meta.deleted = Time(fields, "deletionTimestamp");
  meta.labels = fields.TextMap("labels");
  meta.annotations = fields.TextMap("annotations");
  for (Fields& owner : fields.Objects("ownerReferences")) {
    meta.owners.push_back({.api_version = owner.Text("apiVersion"),
                           .kind = owner.Text("kind"),
                           .name = owner.Text("name"),
                           .uid = owner.Text("uid"),
                           .controller = owner.Flag("controller", false)});
  }
  MUSTER_RETURN_IF_ERROR(complaints.status());
  return meta;
}

Json OwnerReferenceTo(std::string_view api_version, std::string_view kind, const Meta& owner) {
  return {{"apiVersion", api_version}, {"kind", kind},       {"name", owner.name},
          {"uid", owner.uid},          {"controller", true}, {"blockOwnerDeletion", true}};
}

Json OwnedMetadata(std::string_view api_version, std::string_view kind, const Meta& owner, std::string_view name) {
  Json metadata = {{"name", name}};
  if (!owner.ns.empty()) metadata["namespace"] = owner.ns;
  if (!owner.uid.empty()) metadata["ownerReferences"] = Json::array({OwnerReferenceTo(api_version, kind, owner)});
  return metadata;
}

}  // namespace muster::controller

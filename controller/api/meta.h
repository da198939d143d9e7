// SPDX-License-Identifier: Apache-2.0
// The metadata of a Kubernetes object, as far as Muster reads it. Pure; untrusted input.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/clock.h"
#include "base/json_fields.h"
#include "base/status.h"

namespace muster::controller {

inline constexpr size_t kLongestConditionMessage = 32768;  // bytes: metav1.Condition's limit

struct OwnerReference {
  std::string api_version, kind, name, uid;
  bool controller = false;
  bool operator==(const OwnerReference&) const = default;
};

struct Meta {
  std::string ns;  // namespace; empty: the object is cluster-scoped, or does not say
  std::string name;
  std::string uid;
  std::string resource_version;
  int64_t generation = 0;
  std::optional<WallTime> created;
  std::optional<WallTime> deleted;  // deletionTimestamp; none: it is not being deleted
  std::map<std::string, std::string> labels, annotations;
  std::vector<OwnerReference> owners;
  bool operator==(const Meta&) const = default;

  std::string_view Label(std::string_view key) const;       // empty: absent
  std::string_view Annotation(std::string_view key) const;  // empty: absent
  const OwnerReference* Controller() const;                 // null: no controller owns it
  bool IsControlledBy(const Meta& owner) const;             // its controller has the owner's uid
};

// metadata of `object`. InvalidArgument begins with the path: "metadata.name: it is missing".
StatusOr<Meta> ReadMeta(const Json& object);

// {apiVersion, kind, name, uid, controller: true, blockOwnerDeletion: true}
Json OwnerReferenceTo(std::string_view api_version, std::string_view kind, const Meta& owner);

// {name, namespace, ownerReferences} of an object that belongs to `owner`. namespace is left out if `owner` has none,
// ownerReferences if it has no UID.
Json OwnedMetadata(std::string_view api_version, std::string_view kind, const Meta& owner, std::string_view name);

}  // namespace muster::controller

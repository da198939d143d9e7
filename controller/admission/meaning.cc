// SPDX-License-Identifier: Apache-2.0
#include "controller/admission/meaning.h"

#include <algorithm>

#include "base/text.h"
#include "controller/api/lenient.h"
#include "controller/api/quantity.h"

namespace muster::controller {
namespace {

bool IsEmpty(const Json* value) {
  if (value == nullptr || value->is_null()) return true;
  if (value->is_string()) return value->get_ref<const std::string&>().empty();
  if (!value->is_structured()) return false;
  return value->is_array() ? value->empty()
                           : std::all_of(value->begin(), value->end(), [](const Json& of) { return IsEmpty(&of); });
}

bool SameAmount(const Json& one, const Json& other) {
  const auto a = ReadQuantity(one), b = ReadQuantity(other);
  return a.ok() && b.ok() ? *a == *b : one == other;
}

std::set<std::string> KeysOf(const Json* one, const Json* other) {
  std::set<std::string> keys;
  for (const Json* object : {one, other}) {
    if (object == nullptr || !object->is_object()) continue;
    for (const auto& [key, value] : object->items()) keys.insert(key);
  }
  return keys;
}

// `amounts`: the values are inside a container's resources, and are compared as quantities.
bool Same(const Json* one, const Json* other, bool amounts) {
  if (IsEmpty(one) || IsEmpty(other)) return IsEmpty(one) && IsEmpty(other);
  if (one->is_object() && other->is_object()) {
    const auto keys = KeysOf(one, other);
    return std::all_of(keys.begin(), keys.end(), [&](const std::string& key) {
      return Same(FindField(*one, key.c_str()), FindField(*other, key.c_str()),
                  amounts || key == "resources" || key == "resourcesPerNode");
    });
  }
  if (one->is_array() && other->is_array()) {
    return std::equal(one->begin(), one->end(), other->begin(), other->end(),
                      [&](const Json& a, const Json& b) { return Same(&a, &b, amounts); });
  }
  return amounts ? SameAmount(*one, *other) : *one == *other;
}

}  // namespace

bool SameMeaning(const Json* one, const Json* other) { return Same(one, other, false); }

std::set<std::string> Differing(const Json* one, const Json* other) {
  std::set<std::string> keys = KeysOf(one, other);
  const auto field = [](const Json* of, const std::string& key) {
    return of == nullptr ? of : FindField(*of, key.c_str());
  };
  std::erase_if(keys, [&](const std::string& key) {
    return Same(field(one, key), field(other, key), key == "resourcesPerNode");
  });
  return keys;
}

RuntimeRef RuntimeRefOf(const Json& train_job) {
  RuntimeRef ref;
  const Json& given = PartOf(train_job, "spec", "runtimeRef");
  ref.name = TextField(given, "name");
  if (std::string kind = TextField(given, "kind"); !kind.empty()) ref.kind = std::move(kind);
  if (std::string group = TextField(given, "apiGroup"); !group.empty()) ref.api_group = std::move(group);
  return ref;
}

bool IsSuspended(const Json& train_job) { return FlagField(PartOf(train_job, "spec"), "suspend", false); }

bool IsBeingDeleted(const Json& object) { return !PartOf(object, "metadata", "deletionTimestamp").is_null(); }

bool IsDeprecated(const Json& runtime) {
  return TextField(PartOf(runtime, "metadata", "labels"), "trainer.kubeflow.org/support") == "deprecated";
}

std::string DeprecationOf(std::string_view what, std::string_view name) {
  return fmt::format(
      "{} \"{}\" is deprecated and will be removed in a future release of Kubeflow Trainer. See runtime deprecation "
      "policy: https://trainer.kubeflow.org/en/latest/operator-guides/runtime.html#runtime-deprecation-policy",
      what, name);
}

}  // namespace muster::controller

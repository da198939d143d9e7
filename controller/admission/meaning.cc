#include "controller/admission/meaning.h"

#include <algorithm>

#include "base/text.h"
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

// `amounts`: inside of a container's resources.
bool Same(const Json* one, const Json* other, bool amounts) {
  if (IsEmpty(one) || IsEmpty(other)) return IsEmpty(one) && IsEmpty(other);
  if (one->is_object() && other->is_object()) {
    const auto keys = KeysOf(one, other);
    return std::all_of(keys.begin(), keys.end(), [&](const std::string& key) {
      return Same(Inner(one, key.c_str()), Inner(other, key.c_str()),
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
  std::erase_if(keys, [&](const std::string& key) {
    return Same(Inner(one, key.c_str()), Inner(other, key.c_str()), key == "resourcesPerNode");
  });
  return keys;
}

const Json* Inner(const Json* object, const char* name) {
  return object == nullptr ? nullptr : FindField(*object, name);
}

RuntimeRef RuntimeRefOf(const Json& train_job) {
  RuntimeRef ref;
  const Json* given = Inner(&train_job, "spec", "runtimeRef");
  if (given == nullptr) return ref;
  ref.name = TextField(*given, "name");
  if (std::string kind = TextField(*given, "kind"); !kind.empty()) ref.kind = std::move(kind);
  if (std::string group = TextField(*given, "apiGroup"); !group.empty()) ref.api_group = std::move(group);
  return ref;
}

bool IsSuspended(const Json& train_job) {
  const Json* suspend = Inner(&train_job, "spec", "suspend");
  return suspend != nullptr && suspend->is_boolean() && suspend->get<bool>();
}

bool IsBeingDeleted(const Json& object) { return Inner(&object, "metadata", "deletionTimestamp") != nullptr; }

bool IsDeprecated(const Json& runtime) {
  const Json* labels = Inner(&runtime, "metadata", "labels");
  return labels != nullptr && TextField(*labels, "trainer.kubeflow.org/support") == "deprecated";
}

std::string DeprecationOf(std::string_view what, std::string_view name) {
  return fmt::format(
      "{} \"{}\" is deprecated and will be removed in a future release of Kubeflow Trainer. See runtime deprecation "
      "policy: https://trainer.kubeflow.org/en/latest/operator-guides/runtime.html#runtime-deprecation-policy",
      what, name);
}

}  // namespace muster::controller

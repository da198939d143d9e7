// SPDX-License-Identifier: Apache-2.0
#include "controller/api/lenient.h"

#include <limits>

#include "base/iso_time.h"
#include "controller/api/fields.h"

namespace muster::controller {

std::optional<int> IntField(const Json& object, const char* name, int least) {
  const Json* value = FindField(object, name);
  const auto number = value == nullptr ? std::nullopt : WholeNumber(*value);
  if (!number || *number < least || *number > std::numeric_limits<int>::max()) return std::nullopt;
  return static_cast<int>(*number);
}

int CountField(const Json& object, const char* name) { return IntField(object, name).value_or(0); }

bool FlagField(const Json& object, const char* name, bool otherwise) {
  const Json* value = FindField(object, name);
  return value != nullptr && value->is_boolean() ? value->get<bool>() : otherwise;
}

std::optional<WallTime> TimeField(const Json& object, const char* name) {
  const auto time = ParseWallTime(TextField(object, name));
  return time.ok() ? std::optional(*time) : std::nullopt;
}

const Json& ListField(const Json& object, const char* name) {
  static const Json* const kNone = new Json(Json::array());
  const Json* value = FindField(object, name);
  return value != nullptr && value->is_array() ? *value : *kNone;
}

const Json& MapField(const Json& object, const char* name) {
  static const Json* const kNone = new Json(Json::object());
  const Json* value = FindField(object, name);
  return value != nullptr && value->is_object() ? *value : *kNone;
}

const Json& PartOf(const Json& object, const char* name) {
  static const Json* const kNone = new Json();
  const Json* value = FindField(object, name);
  return value == nullptr ? *kNone : *value;
}

void PutText(Json& object, const char* name, const std::string& text) {
  if (!text.empty()) object[name] = text;
}

std::string NameOf(const Json& object) { return TextField(PartOf(object, "metadata"), "name"); }
std::string UidOf(const Json& object) { return TextField(PartOf(object, "metadata"), "uid"); }

void DropNulls(Json* json) {
  if (json->is_object()) {
    for (auto it = json->begin(); it != json->end();) {
      if (it->is_null()) {
        it = json->erase(it);
      } else {
        DropNulls(&*it);
        ++it;
      }
    }
  } else if (json->is_array()) {
    for (Json& part : *json) DropNulls(&part);
  }
}

}  // namespace muster::controller

// Fields read without complaints: one of another kind counts as absent. For what the cluster itself writes, such as a
// status, so that nobody's edit stops a job; and for what has been checked before. Pure; outside bytes.
#pragma once

#include <optional>
#include <string>

#include "base/clock.h"
#include "base/json_fields.h"

namespace muster::controller {

// A whole number from `least` to what an int holds.
std::optional<int> IntField(const Json& object, const char* name, int least = 0);
int CountField(const Json& object, const char* name);  // 0: absent
bool FlagField(const Json& object, const char* name, bool otherwise);
std::optional<WallTime> TimeField(const Json& object, const char* name);
const Json& ListField(const Json& object, const char* name);  // an empty list: absent
const Json& MapField(const Json& object, const char* name);   // an empty object: absent
const Json& PartOf(const Json& object, const char* name);     // as it is; null: absent
template <class... Names>
const Json& PartOf(const Json& object, const char* name, const char* inner, Names... others) {
  return PartOf(PartOf(object, name), inner, others...);
}

// Takes out every field that is null, and of lists every null.
void DropNulls(Json* json);
// Writes a text that is not empty.
void PutText(Json& object, const char* name, const std::string& text);

}  // namespace muster::controller

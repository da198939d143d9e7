// SPDX-License-Identifier: Apache-2.0
// Reads fields without complaints: a field of a wrong kind counts as absent. Use it for a status, so that a wrong edit
// does not stop a job, for what else the cluster writes, and for what has been checked before. Pure; untrusted input.
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
const Json& PartOf(const Json& object, const char* name);     // of any kind; null: absent
template <class... Names>
const Json& PartOf(const Json& object, const char* name, const char* inner, Names... others) {
  return PartOf(PartOf(object, name), inner, others...);
}

// metadata.name and metadata.uid; empty: absent.
std::string NameOf(const Json& object);
std::string UidOf(const Json& object);

// Removes every field that is null, in objects at any depth. A null item of a list stays.
void DropNulls(Json* json);
// Writes `text` if it is not empty.
void PutText(Json& object, const char* name, const std::string& text);

}  // namespace muster::controller

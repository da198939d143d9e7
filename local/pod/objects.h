// SPDX-License-Identifier: Apache-2.0
// ConfigMaps and Secrets as a pod uses them. Pure; untrusted input.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <string_view>

#include "base/status.h"
#include "controller/api/fields.h"
#include "local/pod/program.h"

namespace muster::local {

struct ObjectData {
  std::string kind, name;
  std::map<std::string, std::string> texts;  // a Secret's values, decoded; a ConfigMap's data
  std::map<std::string, std::string> bytes;  // a ConfigMap's binaryData: for files alone

  const std::string* Find(const std::string& key) const;  // null: it has no such key
};

// The object of `kind` (ConfigMap, Secret) that the field `name_field` of `use` names. nullopt: it is missing, and
// `use` is optional. NotFound: it is missing. InvalidArgument: its name is missing, or a value cannot be read.
StatusOr<std::optional<ObjectData>> DataOf(controller::Fields use, const char* name_field, std::string_view kind,
                                           const FindObject& find);

// NotFound: `data` has no `key`, which the field at `path` names.
Status NoSuchKey(std::string_view path, std::string_view key, const ObjectData& data);

}  // namespace muster::local

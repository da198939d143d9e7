// What a plain scalar of YAML means to kubectl (sigs.k8s.io/yaml, which is YAML 1.1 in this). Pure; outside bytes.
#pragma once

#include <optional>
#include <string_view>

#include "base/json_fields.h"

namespace muster::controller {

// null, true, false, a number or the text itself. nullopt: a number that JSON does not have (.inf, .nan).
std::optional<Json> PlainScalar(std::string_view text);

}  // namespace muster::controller

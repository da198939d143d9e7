// SPDX-License-Identifier: Apache-2.0
// Reads a plain scalar of YAML as kubectl does (sigs.k8s.io/yaml follows YAML 1.1 here). Pure; untrusted input.
#pragma once

#include <optional>
#include <string_view>

#include "base/json_fields.h"

namespace muster::controller {

// null, true, false, a number, or the text itself. nullopt: a number that JSON does not have (.inf, .nan).
std::optional<Json> PlainScalar(std::string_view text);

}  // namespace muster::controller

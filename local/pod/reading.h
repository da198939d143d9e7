// SPDX-License-Identifier: Apache-2.0
// What a run needs to know of a Pod as the API has it. Pure.
#pragma once

#include <optional>

#include "base/json_fields.h"

namespace muster::local {

// How the ended pod's containers ended: the first exit code that is not 0, else 0. Sidecars, which are stopped at the
// pod's end, do not count. nullopt: no container but init containers has run, and none of these has failed.
std::optional<int> ExitCodeOf(const Json& pod);
bool IsReady(const Json& pod);

}  // namespace muster::local

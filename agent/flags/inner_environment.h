// SPDX-License-Identifier: Apache-2.0
// What an agent changes in the environment of its workers, for another agent that may run among them. Pure.
#pragma once

#include <string_view>

#include "base/environment.h"

namespace muster::agent {

// Holds what an outer agent has set by itself, as "A=B C=D": a flag that wins over it overrules no user's setting.
inline constexpr std::string_view kFromOutside = "MUSTER_FROM_OUTSIDE";

// Sets `name` for an agent inside, and records that no user has set it. `value` has no blank.
void PutForInside(std::string_view name, std::string_view value, Environment* environment);
// True if `name` still has the value that an agent around this one gave it.
bool IsFromOutside(const Environment& environment, std::string_view name);

}  // namespace muster::agent

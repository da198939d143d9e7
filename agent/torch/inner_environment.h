// What an agent changes in the environment of its workers for the sake of another agent among them. Pure.
#pragma once

#include <string_view>

#include "base/environment.h"

namespace muster::agent {

// Holds what an agent around this one has set by itself, "NAME=VALUE" with blanks between: a flag that wins over it
// overrules nobody's wish.
inline constexpr std::string_view kFromOutside = "MUSTER_FROM_OUTSIDE";

// Sets `name` for an agent inside, which will know that nobody else has said so. `value` has no blank.
void PutForInside(std::string_view name, std::string_view value, Environment* environment);
// `name` still has the value that an agent around this one gave it.
bool IsFromOutside(const Environment& environment, std::string_view name);

}  // namespace muster::agent

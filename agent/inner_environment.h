// What an agent changes in the environment of its workers for the sake of another agent among them. Pure.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "agent/flag_reader.h"

namespace muster::agent {

// Holds what an agent around this one has set by itself, "NAME=VALUE" with blanks between: a flag that wins over it
// overrules nobody's wish.
inline constexpr std::string_view kFromOutside = "MUSTER_FROM_OUTSIDE";

// Sets `name` in a list of "NAME=VALUE".
void Put(std::string_view name, std::string_view value, std::vector<std::string>* environment);
// The same for an agent inside, which will know that nobody else has said so. `value` has no blank.
void PutForInside(std::string_view name, std::string_view value, std::vector<std::string>* environment);
// `name` still has the value that an agent around this one gave it.
bool IsFromOutside(const Getenv& getenv, std::string_view name);

}  // namespace muster::agent

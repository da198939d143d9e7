// What a run is told from outside, as seams that a test can give: variables and small files.
#pragma once

#include <functional>
#include <optional>
#include <string>
#include <string_view>

#include "base/status.h"

namespace muster::initializers {

using Getenv = std::function<std::optional<std::string>(std::string_view name)>;
using NameVariable = std::function<std::string(std::string_view variable)>;  // for people: what was set in its place
using ReadText = std::function<StatusOr<std::string>(const std::string& path)>;  // NotFound: no such file

// Without white space around it; a blank one is as one that is not set.
std::optional<std::string> GetVariable(const Getenv& getenv, std::string_view name);

// "1", "true", "yes", "on" and their opposites, in any case; nullopt: none of them.
std::optional<bool> ParseFlag(std::string_view text);

}  // namespace muster::initializers

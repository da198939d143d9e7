// How settings are read: small files, as a seam that a test can give; yes and no; who said them.
#pragma once

#include <functional>
#include <optional>
#include <string>
#include <string_view>

#include "base/environment.h"
#include "base/status.h"

namespace muster::initializers {

using NameVariable = std::function<std::string(std::string_view variable)>;  // for people: what was set in its place
using ReadText = std::function<StatusOr<std::string>(const std::string& path)>;  // NotFound: no such file

// "1", "true", "yes", "on" and their opposites, in any case; nullopt: none of them.
std::optional<bool> ParseFlag(std::string_view text);

}  // namespace muster::initializers

// SPDX-License-Identifier: Apache-2.0
// For reading settings: small files, by a function that a test can replace; yes and no; names of variables.
#pragma once

#include <functional>
#include <optional>
#include <string>
#include <string_view>

#include "base/environment.h"
#include "base/status.h"

namespace muster::initializers {

using NameVariable = std::function<std::string(std::string_view variable)>;      // for messages: where its value is set
using ReadText = std::function<StatusOr<std::string>(const std::string& path)>;  // NotFound: no such file

// "1", "true", "yes", "on" and their opposites, in any case; nullopt: any other text.
std::optional<bool> ParseFlag(std::string_view text);

}  // namespace muster::initializers

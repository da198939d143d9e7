// SPDX-License-Identifier: Apache-2.0
#include "initializers/facts/settings.h"

#include "base/text.h"

namespace muster::initializers {

std::optional<bool> ParseFlag(std::string_view text) {
  const std::string word = Lower(Strip(text));
  if (word == "1" || word == "true" || word == "yes" || word == "on") return true;
  if (word == "0" || word == "false" || word == "no" || word == "off") return false;
  return std::nullopt;
}

}  // namespace muster::initializers

#include "initializers/environment.h"

#include "base/text.h"

namespace muster::initializers {

std::optional<std::string> GetVariable(const Getenv& getenv, std::string_view name) {
  const auto value = getenv(name);
  if (!value || Strip(*value).empty()) return std::nullopt;
  return std::string(Strip(*value));
}

std::optional<bool> ParseFlag(std::string_view text) {
  const std::string word = Lower(Strip(text));
  if (word == "1" || word == "true" || word == "yes" || word == "on") return true;
  if (word == "0" || word == "false" || word == "no" || word == "off") return false;
  return std::nullopt;
}

}  // namespace muster::initializers

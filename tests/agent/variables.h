// SPDX-License-Identifier: Apache-2.0
// Environments for tests of ParseRun and of the wirings.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "base/environment.h"

namespace muster::agent {

// `first`, and the variables of `second` that `first` has not.
inline Environment Joined(const Environment& first, const Environment& second) {
  std::vector<std::string> entries = first.entries();
  entries.insert(entries.end(), second.entries().begin(), second.entries().end());
  return Environment::Of(std::move(entries));
}

inline Environment OfVariables(const std::map<std::string, std::string>& variables) {
  Environment environment;
  for (const auto& [name, value] : variables) environment.Set(name, value);
  return environment;
}

}  // namespace muster::agent

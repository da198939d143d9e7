// SPDX-License-Identifier: Apache-2.0
#include "agent/flags/inner_environment.h"

#include <algorithm>

#include "base/text.h"

namespace muster::agent {

void PutForInside(std::string_view name, std::string_view value, Environment* environment) {
  const std::string known = environment->Get(kFromOutside).value_or("");
  std::vector<std::string> entries;
  for (std::string_view entry : Split(known, ' ')) {
    if (entry.substr(0, entry.find('=')) != name) entries.emplace_back(entry);
  }
  entries.push_back(fmt::format("{}={}", name, value));
  environment->Set(name, value);
  environment->Set(kFromOutside, Join(entries, " "));
}

bool IsFromOutside(const Environment& environment, std::string_view name) {
  auto value = environment.Get(name), known = environment.Get(kFromOutside);
  if (!value || !known) return false;
  std::vector<std::string_view> entries = Split(*known, ' ');
  return std::find(entries.begin(), entries.end(), fmt::format("{}={}", name, *value)) != entries.end();
}

}  // namespace muster::agent

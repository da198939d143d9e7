#include "agent/inner_environment.h"

#include <algorithm>

#include "agent/torch_env.h"
#include "base/text.h"

namespace muster::agent {

void Put(std::string_view name, std::string_view value, std::vector<std::string>* environment) {
  std::erase_if(*environment, [&](const std::string& entry) {
    return entry.starts_with(name) && entry.size() > name.size() && entry[name.size()] == '=';
  });
  environment->push_back(fmt::format("{}={}", name, value));
}

void PutForInside(std::string_view name, std::string_view value, std::vector<std::string>* environment) {
  const std::string known = FindVariable(*environment, kFromOutside).value_or("");
  std::vector<std::string> entries;
  for (std::string_view entry : Split(known, ' ')) {
    if (entry.substr(0, entry.find('=')) != name) entries.emplace_back(entry);
  }
  entries.push_back(fmt::format("{}={}", name, value));
  Put(name, value, environment);
  Put(kFromOutside, Join(entries, " "), environment);
}

bool IsFromOutside(const Getenv& getenv, std::string_view name) {
  auto value = getenv(name), known = getenv(kFromOutside);
  if (!value || !known) return false;
  std::vector<std::string_view> entries = Split(*known, ' ');
  return std::find(entries.begin(), entries.end(), fmt::format("{}={}", name, *value)) != entries.end();
}

}  // namespace muster::agent

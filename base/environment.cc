#include "base/environment.h"

#include <unistd.h>

#include "base/text.h"

namespace muster {
namespace {

bool Names(std::string_view entry, std::string_view name) {
  return entry.size() > name.size() && entry[name.size()] == '=' && entry.starts_with(name);
}

}  // namespace

Environment::Environment(std::initializer_list<std::pair<std::string, std::string>> variables) {
  for (const auto& [name, value] : variables) entries_.push_back(fmt::format("{}={}", name, value));
}

Environment Environment::Of(std::vector<std::string> entries) {
  Environment environment;
  environment.entries_ = std::move(entries);
  return environment;
}

Environment Environment::OfProcess() {
  Environment environment;
  for (char** entry = environ; entry != nullptr && *entry != nullptr; ++entry)
    environment.entries_.emplace_back(*entry);
  return environment;
}

std::optional<std::string> Environment::Get(std::string_view name) const {
  for (const std::string& entry : entries_) {
    if (Names(entry, name)) return entry.substr(name.size() + 1);
  }
  return std::nullopt;
}

std::optional<std::string> Environment::NonBlank(std::string_view name) const {
  const auto value = Get(name);
  if (!value || Strip(*value).empty()) return std::nullopt;
  return std::string(Strip(*value));
}

std::optional<Environment::Variable> Environment::FirstOf(std::string_view names) const {
  for (std::string_view name : Split(names, ' ')) {
    if (auto value = NonBlank(name)) return Variable{std::string(name), *std::move(value)};
  }
  return std::nullopt;
}

void Environment::Set(std::string_view name, std::string_view value) {
  Unset(name);
  entries_.push_back(fmt::format("{}={}", name, value));
}

void Environment::Unset(std::string_view name) {
  std::erase_if(entries_, [&](const std::string& entry) { return Names(entry, name); });
}

}  // namespace muster

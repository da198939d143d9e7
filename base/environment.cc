// SPDX-License-Identifier: Apache-2.0
#include "base/environment.h"

#include <arpa/inet.h>
#include <unistd.h>

#include <algorithm>

#include "base/text.h"

namespace muster {
namespace {

bool Names(std::string_view entry, std::string_view name) {
  return entry.size() > name.size() && entry[name.size()] == '=' && entry.starts_with(name);
}

bool IsNumericAddress(const std::string& text) {
  unsigned char bytes[sizeof(in6_addr)];
  if (!text.starts_with('[')) return inet_pton(AF_INET, text.c_str(), bytes) == 1;
  return text.ends_with(']') && inet_pton(AF_INET6, text.substr(1, text.size() - 2).c_str(), bytes) == 1;
}

}  // namespace

std::optional<ServiceLink> ReadServiceLink(std::string_view variable, std::string_view value) {
  constexpr std::string_view kSuffix = "_PORT";
  if (!variable.ends_with(kSuffix) || variable.size() == kSuffix.size()) return std::nullopt;
  const size_t scheme = value.find("://");
  const size_t colon = value.rfind(':');
  if (scheme == std::string_view::npos || colon <= scheme) return std::nullopt;
  const std::string_view protocol = value.substr(0, scheme);
  if (protocol != "tcp" && protocol != "udp" && protocol != "sctp") return std::nullopt;
  const auto port = ParseInt(value.substr(colon + 1));
  if (!port || *port < 1 || *port > 65535) return std::nullopt;
  if (!IsNumericAddress(std::string(value.substr(scheme + 3, colon - scheme - 3)))) return std::nullopt;
  std::string service = Lower(variable.substr(0, variable.size() - kSuffix.size()));
  std::replace(service.begin(), service.end(), '_', '-');
  return ServiceLink{std::string(variable), std::string(value), std::move(service)};
}

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
    if (!Names(entry, name)) continue;
    std::string value = entry.substr(name.size() + 1);
    if (ReadServiceLink(name, value)) return std::nullopt;
    return value;
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

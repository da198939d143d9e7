// SPDX-License-Identifier: Apache-2.0
#include "local/pod/names.h"

#include <unistd.h>

#include "base/text.h"
#include "controller/api/lenient.h"

namespace muster::local {

using namespace controller;

namespace {

bool Selects(const Json& service, const Json& pod) {
  const Json& selector = MapField(PartOf(service, "spec"), "selector");
  const Json& labels = MapField(PartOf(pod, "metadata"), "labels");
  for (const auto& [name, value] : selector.items()) {
    if (!value.is_string() || TextField(labels, name.c_str()) != value.get_ref<const std::string&>()) return false;
  }
  return !selector.empty();
}

bool IsOfName(char c) {
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '-' || c == '.' || c == '_';
}

std::string Spelled(const std::string& name, const std::string& ns) {
  return fmt::format(" {0} {0}.{1} {0}.{1}.svc {0}.{1}.svc.cluster.local", name, ns);
}

}  // namespace

std::string HostOf(const Json& pod) {
  const std::string host = TextField(PartOf(pod, "spec"), "hostname");
  return host.empty() ? NameOf(pod) : host;
}

void PodNames::SetAddress(const std::string& host, std::string address) { addresses_[host] = std::move(address); }

// The second and the third number come from the process ID, so two runs at a time seldom have the same addresses.
std::string PodNames::AddressOf(const Json& pod) {
  auto [known, is_new] = addresses_.try_emplace(HostOf(pod));
  if (is_new) {
    const int run = static_cast<int>(getpid()), count = static_cast<int>(addresses_.size()) - 1;
    known->second = fmt::format("127.{}.{}.{}", run % 253 + 1, (run / 253 + count / 250) % 256, count % 250 + 2);
  }
  return known->second;
}

std::map<std::string, std::string> PodNames::NamesOf(const std::vector<const Json*>& pods) {
  std::map<std::string, std::string> names;
  for (const Json* pod : pods) {
    const std::string host = HostOf(*pod), address = AddressOf(*pod);
    names[host] = address;
    const std::string subdomain = TextField(PartOf(*pod, "spec"), "subdomain");
    if (subdomain.empty()) continue;
    const std::string ns = TextField(PartOf(*pod, "metadata"), "namespace");
    const std::string spelled = Spelled(fmt::format("{}.{}", host, subdomain), ns);
    for (const std::string_view name : Words(spelled)) names[std::string(name)] = address;
  }
  return names;
}

std::string PodNames::FileOf(const std::vector<const Json*>& pods, const std::vector<const Json*>& services) {
  std::string text = "127.0.0.1 localhost\n::1 localhost\n";
  for (const Json* pod : pods) {
    const std::string host = HostOf(*pod), ns = TextField(PartOf(*pod, "metadata"), "namespace");
    std::string names = " " + host;
    for (const Json* service : services) {
      if (!Selects(*service, *pod)) continue;
      const std::string name = NameOf(*service);
      if (TextField(PartOf(*pod, "spec"), "subdomain") == name) names += Spelled(fmt::format("{}.{}", host, name), ns);
      names += Spelled(name, ns);
    }
    text += AddressOf(*pod) + names + "\n";
  }
  return text;
}

std::string WithAddresses(std::string_view text, const std::map<std::string, std::string>& names) {
  std::string replaced;
  for (size_t at = 0; at < text.size();) {
    size_t end = at;
    while (end < text.size() && IsOfName(text[end])) ++end;
    const std::string_view word = text.substr(at, end - at);
    const std::string_view name = word.substr(0, word.find_last_not_of('.') + 1);  // dots at the end may end a sentence
    const auto known = names.find(std::string(name));
    if (known == names.end()) {
      replaced += word;
    } else {
      replaced += known->second;
      replaced += word.substr(name.size());
    }
    if (end < text.size()) replaced += text[end];
    at = end + 1;
  }
  return replaced;
}

}  // namespace muster::local

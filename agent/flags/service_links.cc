// SPDX-License-Identifier: Apache-2.0
#include "agent/flags/service_links.h"

#include <algorithm>

#include "base/text.h"

namespace muster::agent {

std::vector<ServiceLink> LinksAmongSettings(const Environment& environment) {
  std::vector<ServiceLink> links;
  for (const std::string& entry : environment.entries()) {
    const std::string_view name = std::string_view(entry).substr(0, entry.find('='));
    if (name.size() == entry.size()) continue;
    if (std::find(std::begin(kPortVariables), std::end(kPortVariables), name) == std::end(kPortVariables)) continue;
    if (auto link = ReadServiceLink(name, std::string_view(entry).substr(name.size() + 1))) {
      links.push_back(*std::move(link));
    }
  }
  return links;
}

std::string Describe(const ServiceLink& link) {
  return fmt::format(
      "{}={} is not a setting: Kubernetes has set it because of the Service {}; it has no effect here, and commands "
      "are "
      "started without it. With enableServiceLinks: false in the pod's spec no Service sets variables",
      link.variable, link.value, link.service);
}

Environment WithoutLinks(Environment environment) {
  for (const ServiceLink& link : LinksAmongSettings(environment)) environment.Unset(link.variable);
  return environment;
}

}  // namespace muster::agent

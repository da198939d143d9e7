// SPDX-License-Identifier: Apache-2.0
#include "agent/flags/pod_facts.h"

#include "base/utf8.h"

namespace muster::agent {
namespace {

constexpr size_t kLongestJobName = 253;  // of Kubernetes

// "digits" of "digits-node-0-0.digits.team-a.svc", "digits" of "digits-master-0" with the `ending` "-master-0".
std::string_view JobOfHost(std::string_view host, std::string_view ending) {
  const std::string_view first = host.substr(0, host.find('.'));
  if (!first.ends_with(ending) || first.size() == ending.size()) return "";
  const std::string_view name = first.substr(0, first.size() - ending.size());
  if (ending != "-0-0") return name;
  const std::string_view domain = host.substr(std::min(host.size(), first.size() + 1));
  const std::string_view service = domain.substr(0, domain.find('.'));
  return !service.empty() && name.starts_with(service) && name.substr(service.size()).starts_with('-') ? service : "";
}

}  // namespace

std::optional<FlagValue> FirstOf(const Environment& environment, std::string_view names) {
  auto found = environment.FirstOf(names);
  if (!found) return std::nullopt;
  return FlagValue{std::move(found->value), std::move(found->name)};
}

StatusOr<std::optional<int>> FirstNumberOf(const Environment& environment, std::string_view names, int lowest,
                                           int highest) {
  auto value = FirstOf(environment, names);
  if (!value) return std::nullopt;
  return ReadNumber(*value, lowest, highest);
}

std::optional<FlagValue> FirstNode(const Environment& environment) {
  return FirstOf(environment, "TRAINER_NODE_0_HOSTNAME PET_MASTER_ADDR");
}

std::string JobNameOf(const Environment& environment) {
  if (const auto name = environment.NonBlank("MUSTER_JOB")) return std::string(Beginning(*name, kLongestJobName));
  const struct {
    const char* variables;
    const char* ending;
  } places[] = {{"TRAINER_NODE_0_HOSTNAME PET_MASTER_ADDR", "-0-0"},
                {"PET_MASTER_ADDR", "-master-0"},
                {"PET_RDZV_ENDPOINT", "-worker-0"}};
  for (const auto& place : places) {
    const auto host = environment.FirstOf(place.variables);
    if (!host) continue;
    const std::string_view text = host->value;
    const std::string_view name = JobOfHost(text.substr(0, text.find(':')), place.ending);
    if (!name.empty()) return std::string(Beginning(name, kLongestJobName));
  }
  return "";
}

}  // namespace muster::agent

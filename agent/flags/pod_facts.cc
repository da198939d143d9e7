#include "agent/flags/pod_facts.h"

namespace muster::agent {

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

}  // namespace muster::agent

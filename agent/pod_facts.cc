#include "agent/pod_facts.h"

#include "base/text.h"

namespace muster::agent {

std::optional<FlagValue> FirstOf(const Getenv& getenv, std::string_view names) {
  for (std::string_view name : Split(names, ' ')) {
    if (auto text = getenv(name); text && !Strip(*text).empty()) {
      return FlagValue{std::string(Strip(*text)), std::string(name)};
    }
  }
  return std::nullopt;
}

StatusOr<std::optional<int>> FirstNumberOf(const Getenv& getenv, std::string_view names, int lowest, int highest) {
  auto value = FirstOf(getenv, names);
  if (!value) return std::nullopt;
  return ReadNumber(*value, lowest, highest);
}

std::optional<FlagValue> FirstNode(const Getenv& getenv) {
  return FirstOf(getenv, "TRAINER_NODE_0_HOSTNAME PET_MASTER_ADDR");
}

}  // namespace muster::agent

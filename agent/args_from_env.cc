// SPDX-License-Identifier: Apache-2.0
#include "agent/args_from_env.h"

#include <map>
#include <string_view>

#include "agent/flags/torchrun_flag_table.h"
#include "base/args_from_env.h"
#include "base/text.h"

namespace muster::agent {
namespace {

using Variables = std::map<std::string_view, std::string_view>;

// All variables, service links too: $(NAME) may refer to those.
Variables VariablesOf(const Environment& environment) {
  Variables variables;
  for (const std::string& entry : environment.entries()) {
    const std::string_view text = entry;
    const size_t end = text.find('=');
    if (end != std::string_view::npos) variables.emplace(text.substr(0, end), text.substr(end + 1));
  }
  return variables;
}

}  // namespace

StatusOr<WholeCommandLine> ReadArgsFromEnv(const std::vector<std::string>& arguments, const Environment& environment) {
  WholeCommandLine whole{.arguments = arguments};
  const CommandLine line = SplitWhatCanBeRead(arguments, CalledAs::kExec);
  if (!line.values.contains(std::string_view(kArgsFromEnvFlag).substr(2))) return whole;
  const Variables variables = VariablesOf(environment);
  const auto value_of = [&](std::string_view name) {
    const auto found = variables.find(name);
    return found == variables.end() ? fmt::format("$({})", name) : std::string(found->second);
  };
  for (size_t i = line.script_at; i < arguments.size(); ++i) {
    if (!IsArgVariable(arguments[i])) continue;
    const auto found = variables.find(arguments[i]);
    if (found == variables.end()) {
      return absl::InvalidArgumentError(
          fmt::format("{}: the variable {} is not set; it has a word of the command, and the pod's template sets it",
                      kArgsFromEnvFlag, arguments[i]));
    }
    whole.arguments[i] = ExpandReferences(found->second, value_of);
    whole.variables.push_back(arguments[i]);
  }
  for (const CommandLine::Own& own : line.own) {
    if (fmt::format("--{}", own.flag->name) != kArgsFromEnvFlag) continue;
    whole.arguments.erase(whole.arguments.begin() + static_cast<std::ptrdiff_t>(own.first));
    break;
  }
  return whole;
}

}  // namespace muster::agent

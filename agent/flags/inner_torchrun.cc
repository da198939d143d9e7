// SPDX-License-Identifier: Apache-2.0
#include "agent/flags/inner_torchrun.h"

#include <algorithm>
#include <string_view>

namespace muster::agent {
namespace {

std::string_view BaseName(std::string_view path) { return path.substr(path.rfind('/') + 1); }

// Python's own options may come before its -m; they are dropped.
std::optional<InnerTorchrun> PythonsTorchrun(const CommandLine& line) {
  const std::vector<std::string>& words = line.script_args;
  for (size_t at = 0; at < words.size() && words[at].starts_with('-'); ++at) {
    std::string_view module = words[at];
    if (module == "-X" || module == "-W") ++at;
    if (!module.starts_with("-m")) continue;
    module.remove_prefix(2);
    if (module.empty() && ++at < words.size()) module = words[at];
    const bool launch = module == "torch.distributed.launch";
    if (!launch && module != "torch.distributed.run") return std::nullopt;
    const auto rest = words.begin() + static_cast<std::ptrdiff_t>(at) + 1;
    return InnerTorchrun{launch ? CalledAs::kLaunch : CalledAs::kRun, *line.script, {rest, words.end()}};
  }
  return std::nullopt;
}

bool IsTorchrun(std::string_view word) {
  return BaseName(word) == "torchrun" || word == "torch.distributed.run" || word == "torch.distributed.launch";
}

}  // namespace

std::optional<InnerTorchrun> FindInnerTorchrun(const CommandLine& line) {
  if (!line.script) return std::nullopt;
  const std::string_view name = BaseName(*line.script);
  if (name == "torchrun") return InnerTorchrun{CalledAs::kRun, *line.script, line.script_args};
  return name.starts_with("python") ? PythonsTorchrun(line) : std::nullopt;
}

bool NamesTorchrun(const CommandLine& line) {
  constexpr std::string_view kBetweenWords = " \t\n;|&()'\"`";
  if (!line.script || BaseName(*line.script).starts_with("python")) return false;
  for (std::string_view text : line.script_args) {
    for (size_t at = 0; at < text.size();) {
      const size_t end = std::min(text.find_first_of(kBetweenWords, at), text.size());
      if (IsTorchrun(text.substr(at, end - at))) return true;
      at = end + 1;
    }
  }
  return false;
}

}  // namespace muster::agent

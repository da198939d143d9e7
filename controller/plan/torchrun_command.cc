// SPDX-License-Identifier: Apache-2.0
#include "controller/plan/torchrun_command.h"

#include <algorithm>
#include <array>
#include <string>
#include <string_view>
#include <vector>

#include "controller/plan/pod_fields.h"

namespace muster::controller {
namespace {

constexpr std::string_view kName = "torchrun";
constexpr std::array<std::string_view, 5> kShells = {"sh", "bash", "dash", "zsh", "ksh"};

// `python -u -m torch.distributed.run train.py`
bool IsModule(const std::vector<std::string>& words) {
  if (!BaseName(words[0]).starts_with("python")) return false;
  size_t at = 1;
  while (at < words.size() && words[at].starts_with("-") && words[at] != "-m" && words[at] != "-c") ++at;
  return at + 1 < words.size() && words[at] == "-m" &&
         (words[at + 1] == "torch.distributed.run" || words[at + 1] == "torch.distributed.launch");
}

bool IsLoginShell(const std::vector<std::string>& words) {
  if (std::find(kShells.begin(), kShells.end(), BaseName(words[0])) == kShells.end()) return false;
  return std::any_of(words.begin() + 1, words.end(), [](const std::string& word) {
    if (word == "--login") return true;
    return word.starts_with("-") && !word.starts_with("--") &&
           word.find_first_not_of("-abcdefghijklmnopqrstuvwxyz") == std::string::npos &&
           word.find('l') != std::string::npos;
  });
}

// Whether `text` has the word torchrun by itself, not as part of a path or of a longer name.
bool NamesTorchrun(std::string_view text) {
  constexpr std::string_view kBefore = " \t\n;&|(`\"'{", kAfter = " \t\n;&|)`\"'";
  for (size_t at = text.find(kName); at != std::string_view::npos; at = text.find(kName, at + 1)) {
    const size_t end = at + kName.size();
    const bool begins = at == 0 || kBefore.find(text[at - 1]) != std::string_view::npos;
    const bool ends = end == text.size() || kAfter.find(text[end]) != std::string_view::npos;
    if (begins && ends) return true;
  }
  return false;
}

}  // namespace

Torchrun TorchrunOf(const Json& container) {
  const std::vector<std::string> words = CommandWords(container);
  if (words.empty()) return Torchrun::kNone;
  if (BaseName(words[0]) == "muster") {
    const bool runs = words.size() > 1 && (words[1] == "run" || words[1] == "launch");
    const bool wired = std::find(words.begin(), words.end(), "--wire=torch") != words.end();
    if (runs || wired) return Torchrun::kByPath;
  } else if ((BaseName(words[0]) == kName && words[0] != kName) || IsModule(words)) {
    return Torchrun::kDirect;
  }
  if (IsLoginShell(words)) return Torchrun::kNone;
  return std::any_of(words.begin(), words.end(), NamesTorchrun) ? Torchrun::kByPath : Torchrun::kNone;
}

}  // namespace muster::controller

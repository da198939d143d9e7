// SPDX-License-Identifier: Apache-2.0
#include "local/pod/paths.h"

namespace muster::local {
namespace {

bool IsBetweenWords(char c) { return std::string_view(" \t\r\n\v\f;&|<>()=:,\"'").find(c) != std::string_view::npos; }

}  // namespace

std::string PodPaths::In(std::string_view text) const {
  std::string replaced;
  bool begins = true;
  for (size_t at = 0; at < text.size();) {
    const std::string_view rest = text.substr(at);
    const std::string* source = nullptr;
    size_t longest = 0;
    for (const auto& [path, folder] : sources_) {
      const bool whole = rest.size() == path.size() ||
                         (rest.size() > path.size() && (rest[path.size()] == '/' || IsBetweenWords(rest[path.size()])));
      if (begins && path.size() > longest && rest.starts_with(path) && whole) source = &folder, longest = path.size();
    }
    begins = source == nullptr && IsBetweenWords(text[at]);
    replaced += source == nullptr ? rest.substr(0, 1) : std::string_view(*source);
    at += source == nullptr ? 1 : longest;
  }
  return replaced;
}

}  // namespace muster::local

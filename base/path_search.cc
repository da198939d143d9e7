// SPDX-License-Identifier: Apache-2.0
#include "base/path_search.h"

#include <algorithm>

#include "base/text.h"

namespace muster {

std::string FindOnPath(std::string_view name, std::string_view path, const HostFs& fs,
                       const std::vector<std::string>& skip) {
  auto wanted = [&](const std::string& candidate) {
    if (!fs.IsExecutable(candidate)) return false;
    auto identity = fs.Identity(candidate);
    return std::none_of(skip.begin(), skip.end(), [&](const std::string& other) {
      auto same = fs.Identity(other);
      return same && same == identity;
    });
  };
  if (name.find('/') != std::string_view::npos) return wanted(std::string(name)) ? std::string(name) : "";
  for (std::string_view folder : Split(path, ':')) {
    std::string candidate = fmt::format("{}/{}", folder.empty() ? "." : folder, name);
    if (wanted(candidate)) return candidate;
  }
  return "";
}

}  // namespace muster

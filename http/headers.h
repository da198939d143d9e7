// SPDX-License-Identifier: Apache-2.0
// Header fields of a request or an answer, in the order received. Names are in lower case.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace muster::http {

using Headers = std::vector<std::pair<std::string, std::string>>;

// The first field called `name` (in lower case). The result is valid while `headers` is unchanged.
inline std::optional<std::string_view> FindHeader(const Headers& headers, std::string_view name) {
  for (const auto& [key, value] : headers) {
    if (key == name) return value;
  }
  return std::nullopt;
}

}  // namespace muster::http

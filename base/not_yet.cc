// SPDX-License-Identifier: Apache-2.0
#include "base/not_yet.h"

namespace muster {

std::string NotYet(std::string_view failure, std::string_view address) {
  constexpr std::string_view kRefused = "Connection refused";
  bool refused = true;
  for (size_t at = 0; at != std::string_view::npos && refused;) {
    const size_t end = failure.find("; ", at);
    refused = failure.substr(at, end == std::string_view::npos ? end : end - at).ends_with(kRefused);
    at = end == std::string_view::npos ? end : end + 2;
  }
  if (refused) return "nothing listens there yet";
  if (failure.starts_with(address) && failure.substr(address.size()).starts_with(": ")) {
    failure.remove_prefix(address.size() + 2);
  }
  return std::string(failure);
}

}  // namespace muster

// SPDX-License-Identifier: Apache-2.0
// Shared by the fuzz targets: checks that abort, and input whose first byte chooses what the rest is.
#pragma once

#include <cstdint>
#include <cstdlib>
#include <string_view>

#include "base/status.h"

inline void Must(bool holds) {
  if (!holds) std::abort();
}

// An error says something, and not more than a person reads.
inline void MustBeTold(const muster::Status& status, size_t most = 8192) {
  Must(status.ok() || (!muster::Message(status).empty() && muster::Message(status).size() < most));
}

struct ChosenInput {
  uint8_t choice = 0;
  std::string_view text;
};

inline ChosenInput Choose(const uint8_t* data, size_t size) {
  if (size == 0) return {};
  return {data[0], {reinterpret_cast<const char*>(data + 1), size - 1}};
}

// SPDX-License-Identifier: Apache-2.0
// The hash of a whole text.
#pragma once

#include <string>
#include <string_view>

#include "initializers/facts/digest.h"

namespace muster::initializers {

inline std::string HashOf(HashKind kind, std::string_view bytes) {
  auto hasher = Hasher::Make(kind, bytes.size());
  hasher->Update(bytes);
  return hasher->Finish();
}

}  // namespace muster::initializers

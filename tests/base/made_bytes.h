// SPDX-License-Identifier: Apache-2.0
// Deterministic pseudo-random bytes. Expected values in the tests were computed from the same bytes.
#pragma once

#include <cstdint>
#include <string>

namespace muster {

// The top bytes of Knuth's MMIX generator.
inline std::string MadeBytes(size_t size, uint64_t seed) {
  std::string bytes(size, '\0');
  for (char& byte : bytes) {
    seed = seed * 6364136223846793005u + 1442695040888963407u;
    byte = static_cast<char>(seed >> 56);
  }
  return bytes;
}

}  // namespace muster

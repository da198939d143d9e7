// SPDX-License-Identifier: Apache-2.0
// Argument and environment arrays for execve(2).
#pragma once

#include <string>
#include <vector>

namespace muster {

// A pointer to each text, then a null pointer. Valid while `texts` is unchanged. exec does not write to the texts.
std::vector<char*> ExecPointers(const std::vector<std::string>& texts);

}  // namespace muster

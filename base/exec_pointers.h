// Texts as execve(2) takes them.
#pragma once

#include <string>
#include <vector>

namespace muster {

// A pointer to each text and a null one at the end, valid as long as `texts` is unchanged. exec does not write to them.
std::vector<char*> ExecPointers(const std::vector<std::string>& texts);

}  // namespace muster

// SPDX-License-Identifier: Apache-2.0
// Python's string.Template.safe_substitute, which torchrun uses for arguments and prefixes.
#pragma once

#include <map>
#include <string>
#include <string_view>

namespace muster::agent {

// Replaces "$name" and "${name}" for the names in `values`; "$$" becomes "$"; everything else stays as it is.
std::string SafeSubstitute(std::string_view text, const std::map<std::string, std::string, std::less<>>& values);

}  // namespace muster::agent

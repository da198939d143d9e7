// SPDX-License-Identifier: Apache-2.0
// Versions of this binary and of its protocols. The build fills in Version() and Commit().
#pragma once

#include <string_view>

namespace muster {

std::string_view Version();  // "0.1.0"
std::string_view Commit();   // short hash, with "-dirty" if the tree had changes; "unknown" outside git

// Versions of the protocols in rendezvous.proto and rsh.proto. Both sides must have the same one.
inline constexpr int kRendezvousProtocol = 1;
inline constexpr int kRshProtocol = 1;

}  // namespace muster

// Who this binary is. Filled in by the build.
#pragma once

#include <string_view>

namespace muster {

std::string_view Version();  // "0.1.0"
std::string_view Commit();   // short hash, "-dirty" appended where the tree had changes; "unknown" outside git

// Version of the rendezvous protocol (rendezvous.proto). Both sides must have the same one.
inline constexpr int kRendezvousProtocol = 1;
inline constexpr int kRshProtocol = 1;

}  // namespace muster

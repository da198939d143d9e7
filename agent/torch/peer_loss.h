// Whether a worker's last words say that another worker is gone. Pure.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace muster::agent {

// True if a worker says that a peer went away or never answered: likely a consequence of another death, not a cause.
// Table driven. Generic network errors count only on a line that names gloo, NCCL or the c10d store.
bool LooksLikePeerLoss(std::string_view message, const std::vector<std::string>& stderr_tail);

}  // namespace muster::agent

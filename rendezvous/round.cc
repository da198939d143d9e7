// SPDX-License-Identifier: Apache-2.0
#include "rendezvous/round.h"

#include <algorithm>
#include <tuple>

namespace muster::rendezvous {

bool InTorchrunsOrder(const Node& a, const Node& b) {
  return std::tie(a.address, a.pid, a.name) < std::tie(b.address, b.pid, b.name);
}

Assignment AssignmentFor(const Round& round, int node_rank) {
  Assignment assignment;
  assignment.id = round.id;
  assignment.restart_count = round.restart_count;
  assignment.max_restarts = round.max_restarts;
  assignment.world_size = round.world_size;
  assignment.node_count = static_cast<int>(round.seats.size());
  assignment.node_rank = node_rank;
  assignment.seat = round.seats[static_cast<size_t>(node_rank)];
  assignment.master_host = round.seats.front().node.store_host;
  assignment.master_port = round.seats.front().node.store_port;
  assignment.coordinator_node = round.coordinator_node;
  assignment.reason = round.reason;
  assignment.cause = round.cause;
  size_t successors = std::min(round.seats.size(), kMaxSuccessors);
  for (size_t rank = 0; rank < successors; ++rank) {
    const Node& node = round.seats[rank].node;
    assignment.successors.push_back({static_cast<int>(rank), node.name, node.control_address});
  }
  return assignment;
}

}  // namespace muster::rendezvous

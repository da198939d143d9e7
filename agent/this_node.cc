// SPDX-License-Identifier: Apache-2.0
#include "agent/this_node.h"

#include <unistd.h>

#include <random>

#include "base/host_names.h"
#include "base/text.h"

namespace muster::agent {

rendezvous::Node ThisNode(const RunOptions& options) {
  std::random_device random;
  rendezvous::Node node;
  node.host = HostName();
  node.address = options.job.local_addr.empty() ? FullHostName(node.host) : options.job.local_addr;
  node.pid = getpid();
  node.incarnation = fmt::format("{:08x}{:08x}", random(), random());
  node.slots = options.workers.nproc;
  node.role = options.workers.role;
  node.index = options.job.node_rank;
  if (!options.job.node_name.empty()) {
    node.name = options.job.node_name;
  } else if (options.job.shared.indexed) {
    node.name = fmt::format("node-{}", options.job.node_rank.value_or(0));
  } else {
    node.name = fmt::format("{}_{}", node.host, node.pid);
  }
  return node;
}

}  // namespace muster::agent

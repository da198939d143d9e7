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
  node.address = options.local_addr.empty() ? FullHostName(node.host) : options.local_addr;
  node.pid = getpid();
  node.incarnation = fmt::format("{:08x}{:08x}", random(), random());
  node.slots = options.nproc;
  node.role = options.role;
  node.index = options.node_index;
  if (!options.node_name.empty()) {
    node.name = options.node_name;
  } else if (options.job.indexed) {
    node.name = fmt::format("node-{}", options.node_rank);
  } else {
    node.name = fmt::format("{}_{}", node.host, node.pid);
  }
  return node;
}

}  // namespace muster::agent

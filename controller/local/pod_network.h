// A network for the pods of one run, as root: each host has eth0, an address and all ports for itself.
//
//   this machine               the run's switch (a namespace)        a host (a namespace)
//   mstrN 198.18.x.1  ------   up [br0] p0, p1, ...          ------  eth0 198.18.x.y, its gateway is 198.18.x.1
//
// Namespaces live as long as a descriptor of this process or a process in them. The kernel removes them with all their
// links, the one on this machine too, so a killed run leaves none. Packets to the outside have this machine's address:
// an nftables table masquerades them, and the kernel removes that table with the socket that made it. Only
// net.ipv4.ip_forward outlives a killed run: the next run puts it back at its end. An abstract socket claims `N`.
//
// Blocking, some ms a host. Not thread-safe.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "base/status.h"

namespace muster::controller {

inline constexpr int kMostNetworkHosts = 1000;  // a Linux bridge has 1024 ports

class PodNetwork {
 public:
  // Errors name the step and why it failed: not root, no
  // namespaces, no veth or bridge in the kernel, no free subnet of 198.18.0.0/15; FailedPrecondition where hosts would
  // not reach what this machine reaches, since nftables is missing or a firewall drops what is forwarded.
  static StatusOr<std::unique_ptr<PodNetwork>> Make();
  ~PodNetwork();

  // The address of `host`, which gets its namespace at the first call and keeps it. ResourceExhausted: it would be one
  // more than kMostNetworkHosts.
  StatusOr<std::string> Join(const std::string& host);
  // This machine's, as hosts see it.
  const std::string& gateway() const;
  // The words before a command that runs in the namespace of `host`, which has joined.
  std::vector<std::string> Enter(const std::string& host) const;
  // Drops all packets from and to `host` (`cut`), or none again. Its link stays up: nobody is told.
  Status Cut(const std::string& host, bool cut);

 private:
  class Impl;
  explicit PodNetwork(std::unique_ptr<Impl> impl);
  std::unique_ptr<Impl> impl_;
};

}  // namespace muster::controller

// SPDX-License-Identifier: Apache-2.0
// A network for the pods of one run, as root: each host has eth0, an address and all ports for itself.
//
//   this machine               the run's switch (a namespace)        a host (a namespace)
//   mstrN 198.18.x.1  ------   up [br0] p0, p1, ...          ------  eth0 198.18.x.y, its gateway is 198.18.x.1
//
// A namespace exists as long as a descriptor of this process or a process in it. The kernel removes it with all its
// links, also that on this machine, so a killed run leaves none. Packets to the outside get this machine's address: an
// nftables table masquerades them, and the kernel removes that table with the socket that made it. Only
// net.ipv4.ip_forward stays set after a killed run: the next run resets it at its end. An abstract socket claims `N`.
//
// Blocking, some ms a host. Not thread-safe.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "base/status.h"

namespace muster::local {

inline constexpr int kMostNetworkHosts = 1000;  // a Linux bridge has 1024 ports

class PodNetwork {
 public:
  // Errors name the step and the cause: this process is not root, the kernel has no namespaces, veth links or bridges,
  // or no subnet of 198.18.0.0/15 is free. FailedPrecondition: hosts would not reach what this machine reaches, since
  // the kernel has no nftables or a firewall drops forwarded packets.
  static StatusOr<std::unique_ptr<PodNetwork>> Make();
  ~PodNetwork();

  // The address of `host`. The first call creates its namespace; later calls return the same address.
  // ResourceExhausted: there are kMostNetworkHosts already.
  StatusOr<std::string> Join(const std::string& host);
  // This machine's address in the network.
  const std::string& gateway() const;
  // The words to put before a command, so that it runs in the namespace of `host`, which must have joined.
  std::vector<std::string> Enter(const std::string& host) const;
  // Drops all packets from and to `host` (`cut`), or none again. Its link stays up, so no process gets an error.
  Status Cut(const std::string& host, bool cut);

 private:
  class Impl;
  explicit PodNetwork(std::unique_ptr<Impl> impl);
  std::unique_ptr<Impl> impl_;
};

}  // namespace muster::local

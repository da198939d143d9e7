// SPDX-License-Identifier: Apache-2.0
// Chains, and a table that masquerades, in the kernel's nftables: by netlink (libnl), because the library of nft has a
// licence that does not go with Muster's, and machines without nft have nftables, too. Messages and attributes:
// linux/netfilter/nf_tables.h. Blocking. Not thread-safe.
#pragma once

#include <cstdint>
#include <memory>
#include <string>

#include "base/status.h"

struct nl_sock;

namespace muster::local {

class NfTables {
 public:
  // Errors of all calls: FailedPrecondition, with the step and the kernel's reason: it has no nftables, or this process
  // no right to change the network.
  static StatusOr<NfTables> Open();

  // A chain whose policy drops forwarded IPv4 packets that no rule accepts, as `nft` names it: "ip filter FORWARD".
  // Empty: there is none.
  StatusOr<std::string> DroppingChain();

  // Adds the table `ip NAME`. Packets from the subnet (host byte order, `bits` bits) that leave by another interface
  // than `link` get this machine's address. The kernel removes the table when this object, or the process, ends
  // (Linux 5.12 or later).
  Status AddMasquerade(const std::string& name, uint32_t subnet, int bits, const std::string& link);

 private:
  struct Free {
    void operator()(nl_sock* socket) const;
  };
  explicit NfTables(nl_sock* socket) : socket_(socket) {}

  std::unique_ptr<nl_sock, Free> socket_;
};

}  // namespace muster::local

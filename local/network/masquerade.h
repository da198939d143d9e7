// SPDX-License-Identifier: Apache-2.0
// Forwards packets from one link of this machine with this machine's address (NAT). Blocking. Not thread-safe.
#pragma once

#include <cstdint>
#include <memory>
#include <string>

#include "base/status.h"

namespace muster::local {

class Masquerade {
 public:
  // `link`: an interface of this machine; `subnet`: the first address behind it (host byte order), of 2^(32 - `bits`).
  // FailedPrecondition: a firewall drops forwarded packets, or the kernel has no nftables.
  static StatusOr<std::unique_ptr<Masquerade>> Make(const std::string& link, uint32_t subnet, int bits);
  // Removes its rules. If a run has switched net.ipv4.ip_forward on and no other run needs it, switches it off.
  ~Masquerade();

 private:
  class Impl;
  explicit Masquerade(std::unique_ptr<Impl> impl);
  std::unique_ptr<Impl> impl_;
};

}  // namespace muster::local

// Forwards what comes in by one link of this machine, with this machine's address. Blocking. Not thread-safe.
#pragma once

#include <memory>
#include <string>

#include "base/status.h"

namespace muster::controller {

class Masquerade {
 public:
  // `link`: an interface of this machine; `subnet`: "198.18.8.0/21", what is behind it. FailedPrecondition: a firewall
  // drops what is forwarded, or the kernel has no nftables.
  static StatusOr<std::unique_ptr<Masquerade>> Make(const std::string& link, const std::string& subnet);
  // Takes its rules back, and net.ipv4.ip_forward where no other run needs it.
  ~Masquerade();

 private:
  class Impl;
  explicit Masquerade(std::unique_ptr<Impl> impl);
  std::unique_ptr<Impl> impl_;
};

}  // namespace muster::controller

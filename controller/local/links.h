// Network links of one namespace, by rtnetlink (libnl). Blocking. Not thread-safe.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "base/descriptors.h"
#include "base/status.h"

struct nl_sock;

namespace muster::controller {

// A network namespace that nothing is in yet. It goes with its last descriptor and its last process.
StatusOr<Descriptor> NewNetwork();

class Links {
 public:
  // Of the namespace `network`, or of this thread's: -1.
  static StatusOr<Links> Of(int network = -1);

  // A pair of links: `name` here, which is up, a port of bridge `bridge` where that is not empty, and `peer` in the
  // namespace `network`, which is not. AlreadyExists: one of the names is taken.
  Status AddPair(const std::string& name, const std::string& bridge, const std::string& peer, int network);
  Status AddBridge(const std::string& name);
  Status Remove(const std::string& name);
  // `name` gets the IPv4 address (host byte order) with its subnet of `bits`.
  Status SetAddress(const std::string& name, uint32_t address, int bits);
  Status SetUp(const std::string& name);
  Status AddDefaultRoute(uint32_t gateway);
  // Makes `name` a port of `bridge`, or of none: "".
  Status SetBridge(const std::string& name, const std::string& bridge);

 private:
  struct Free {
    void operator()(nl_sock* socket) const;
  };
  explicit Links(nl_sock* socket) : socket_(socket) {}
  StatusOr<int> IndexOf(const std::string& name);

  std::unique_ptr<nl_sock, Free> socket_;
};

}  // namespace muster::controller

// SPDX-License-Identifier: Apache-2.0
// Makes and changes network links of one network namespace, by rtnetlink (libnl). Blocking. Not thread-safe.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "base/descriptors.h"
#include "base/status.h"

struct nl_sock;

namespace muster::local {

// Creates a network namespace without processes. It exists as long as a descriptor of it or a process in it.
StatusOr<Descriptor> NewNetwork();

class Links {
 public:
  // The links of the namespace `network`; -1: of this thread's namespace.
  static StatusOr<Links> Of(int network = -1);

  // Creates a veth pair: `name` in this namespace, up, and a port of the bridge `bridge` unless that is empty; `peer`
  // in the namespace `network`, down. AlreadyExists: one of the names is taken.
  Status AddPair(const std::string& name, const std::string& bridge, const std::string& peer, int network);
  Status AddBridge(const std::string& name);
  Status Remove(const std::string& name);
  // Gives `name` the IPv4 address (host byte order) and its subnet of `bits` bits.
  Status SetAddress(const std::string& name, uint32_t address, int bits);
  Status SetUp(const std::string& name);
  Status AddDefaultRoute(uint32_t gateway);
  // Makes `name` a port of `bridge`; "": of no bridge.
  Status SetBridge(const std::string& name, const std::string& bridge);

 private:
  struct Free {
    void operator()(nl_sock* socket) const;
  };
  explicit Links(nl_sock* socket) : socket_(socket) {}
  StatusOr<int> IndexOf(const std::string& name);

  std::unique_ptr<nl_sock, Free> socket_;
};

}  // namespace muster::local

// SPDX-License-Identifier: Apache-2.0
// Resolves names to numeric addresses without getaddrinfo: the static agent must not load the image's NSS modules.
//
// Order: numeric addresses (v4, v6, [v6]) and "localhost" need no look-up; then the hosts file; then DNS
// (dns_lookup.h). Every look-up reads the hosts file and resolv.conf anew, so a process that waits for a name sees
// changes of both. Loop thread only.
#pragma once

#include <boost/asio/io_context.hpp>
#include <boost/asio/ip/address.hpp>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "base/clock.h"
#include "base/status.h"
#include "net/dns_lookup.h"

namespace muster::net {

class Resolver {
 public:
  struct Options {
    std::string hosts_file = "/etc/hosts";
    DnsLookUp::Options dns;
  };
  // At most DnsLookUp::kMaxAddresses different addresses, in the order of the source. Errors: NotFound (no such name),
  // Unavailable (no usable answer), DeadlineExceeded (no answer in time), InvalidArgument (no host name).
  using Done = std::function<void(StatusOr<std::vector<boost::asio::ip::address>>)>;

  explicit Resolver(boost::asio::io_context& loop) : Resolver(loop, Options{}) {}
  Resolver(boost::asio::io_context& loop, Options options);
  ~Resolver();  // cancels all look-ups: no `done` is called after it
  Resolver(const Resolver&) = delete;
  Resolver& operator=(const Resolver&) = delete;

  // Calls `done` once, on the loop, never from within this call and at the latest after `limit`. `name` is a host
  // without port.
  void Resolve(const std::string& name, Duration limit, Done done);

 private:
  class Impl;
  std::shared_ptr<Impl> impl_;
};

}  // namespace muster::net

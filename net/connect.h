// SPDX-License-Identifier: Apache-2.0
// Connects to "host:port" by TCP and reports the exact reason of a failure. Loop thread only.
//
// gRPC hides the reason, but callers must distinguish "refused" (the process is gone) from "no answer".
#pragma once

#include <boost/asio/io_context.hpp>
#include <functional>
#include <memory>
#include <string>

#include "base/clock.h"
#include "net/loss.h"
#include "net/resolver.h"

namespace muster::net {

struct HostPort {
  std::string host;  // without brackets
  int port = 0;
};
// Parses "host:port", "1.2.3.4:80", "[::1]:80". InvalidArgument says what is wrong. `lowest_port`: 0 if the kernel may
// choose the port.
StatusOr<HostPort> ParseHostPort(const std::string& address, int lowest_port = 1);

// One attempt to connect. Destroying it cancels the attempt.
class Connecting {
 public:
  struct Connected {
    int fd = -1;          // owned by the receiver; non-blocking, TCP_NODELAY
    std::string address;  // numeric "1.2.3.4:80" or "[::1]:80"
    bool v6 = false;
  };
  struct Failed {
    Loss loss;
    std::string detail;  // "10.0.0.7:29400: Connection refused"
  };
  struct Events {
    std::function<void(const Connected&)> connected;
    std::function<void(const Failed&)> failed;
  };
  // Tries the addresses of the name one after the other, for at most `limit` in total. Calls one of `events` once,
  // never from within this call. The loss is kRefused only if at least one address refused and none was silent.
  static std::unique_ptr<Connecting> Start(boost::asio::io_context& loop, Resolver& resolver,
                                           const std::string& address, Duration limit, Events events);
  virtual ~Connecting() = default;
};

}  // namespace muster::net

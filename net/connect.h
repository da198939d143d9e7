// "host:port" -> a connected TCP socket, with the exact reason where that fails. Loop thread only.
//
// gRPC hides why a connection failed; its callers must tell "refused" (that process is gone) from "no answer".
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
// "host:port", "1.2.3.4:80", "[::1]:80"; InvalidArgument says what is wrong.
// `lowest_port`: 0 where the kernel may choose.
StatusOr<HostPort> ParseHostPort(const std::string& address, int lowest_port = 1);

// One attempt; destroying it drops it.
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
  // Tries the addresses of the name one after the other; `limit` bounds the whole. Calls one of `events`, once, never
  // from within this call. kRefused only if no address left room for doubt: at least one refused and none was silent.
  static std::unique_ptr<Connecting> Start(boost::asio::io_context& loop, Resolver& resolver,
                                           const std::string& address, Duration limit, Events events);
  virtual ~Connecting() = default;
};

}  // namespace muster::net

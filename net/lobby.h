// SPDX-License-Identifier: Apache-2.0
// Accepted connections that have not begun as gRPC does: with HTTP/2's preface, or with a TLS handshake. So a client
// that connects and says nothing, or speaks another protocol, never costs more than a socket, and is the first to go.
//
// Loop thread only.
#pragma once

#include <boost/asio/io_context.hpp>
#include <boost/asio/posix/stream_descriptor.hpp>
#include <boost/asio/steady_timer.hpp>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>

#include "base/clock.h"
#include "base/descriptors.h"

namespace muster::net {

class Lobby {
 public:
  // `ready` gets each connection that has begun so, with these bytes unread, and owns the descriptor. TLS where gRPC
  // serves none, and the reverse, are also handed over: gRPC's refusal tells the client more than a closed connection.
  Lobby(boost::asio::io_context& loop, std::function<void(int fd)> ready);

  // Takes a connection, which must not block. Closes it if it begins otherwise, or not within 10 s.
  void Admit(Descriptor connection);
  // Closes the oldest connection, if it is older than a second. False: there is none.
  bool CloseOldest();
  void Close();  // closes all; may be repeated

 private:
  struct Guest {
    boost::asio::posix::stream_descriptor connection;
    TimePoint since;
  };
  void Heard(uint64_t number);
  void AwaitDeadline();

  boost::asio::io_context& loop_;
  const std::function<void(int fd)> ready_;
  std::map<uint64_t, Guest> guests_;  // the oldest first
  uint64_t last_ = 0;
  const std::shared_ptr<bool> alive_ = std::make_shared<bool>(true);  // for handlers
  boost::asio::steady_timer deadline_;
};

}  // namespace muster::net

// SPDX-License-Identifier: Apache-2.0
// The byte stream of one connection of http/server.h: plain TCP, or TLS (server_tls.h). The server knows only this
// interface, so a program without TLS does not link it.
//
// Loop thread only. Of each of Begin, Read, Write and Finish, at most one is pending at a time. Handlers are called
// once and never from within the call. After Close they are called soon, with an error. A stream may be destroyed after
// Close while handlers are pending.
#pragma once

#include <boost/asio/buffer.hpp>
#include <boost/asio/ip/tcp.hpp>
#include <cstddef>
#include <functional>
#include <memory>
#include <string_view>

namespace muster::http {

class ServerStream {
 public:
  using Done = std::function<void(boost::system::error_code)>;
  using Moved = std::function<void(boost::system::error_code, size_t bytes)>;

  virtual ~ServerStream() = default;
  virtual void Begin(Done done) = 0;  // the handshake; call it once, before all others
  virtual void Read(boost::asio::mutable_buffer into, Moved moved) = 0;
  virtual void Write(std::string_view bytes, Done done) = 0;  // writes all; `bytes` must stay valid until `done`
  // Tells the peer that no more bytes come. After it, Read may give encrypted bytes: drop them.
  virtual void Finish(Done done) = 0;
  virtual void Close() = 0;  // at once; may be repeated
};

// Makes streams of accepted sockets. It must outlive the server.
class ServerStreams {
 public:
  virtual ~ServerStreams() = default;
  virtual std::unique_ptr<ServerStream> Make(boost::asio::ip::tcp::socket socket) = 0;
};

}  // namespace muster::http

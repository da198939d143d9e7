// The bytes of one connection that http/server.h serves: plain TCP, or TLS (server_tls.h). The server knows only this,
// so that a program which serves no TLS links none of it.
//
// Loop thread only. Of each of Begin, Read, Write and Finish one is under way at a time. Handlers are called once and
// never from within the call; after Close they are called soon, with an error. A stream may be destroyed after Close
// with handlers still to come.
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
  virtual void Begin(Done done) = 0;  // a handshake; once, before anything else
  virtual void Read(boost::asio::mutable_buffer into, Moved moved) = 0;
  virtual void Write(std::string_view bytes, Done done) = 0;  // all of them; they must stay where they are until `done`
  // Tells the peer that nothing more comes from here. What Read gives after it is only good to be dropped.
  virtual void Finish(Done done) = 0;
  virtual void Close() = 0;                                   // at once; any number of times
};

// What makes streams of accepted sockets. It must outlive the server.
class ServerStreams {
 public:
  virtual ~ServerStreams() = default;
  virtual std::unique_ptr<ServerStream> Make(boost::asio::ip::tcp::socket socket) = 0;
};

}  // namespace muster::http

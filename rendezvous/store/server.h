// SPDX-License-Identifier: Apache-2.0
// A TCPStore server for PyTorch clients of every generation, on the caller's loop.
//
// Never blocks: a client that is slow, half-open or does not read delays no other one. While a client does not read its
// answers, nothing more is read from it: the server holds at most one answer (kMaxAnswer) and one read for it. A client
// that watches keys and does not read is closed when more than 1 MiB of events waits for it. An idle connection costs
// some tens of bytes. A violation of the protocol closes only its connection. No name is ever looked up.
//
// A connection without one whole request after 5 min is closed. If no file descriptor is left for a new one, the oldest
// such connection that is older than 5 s is closed sooner; if there is none, the server stops accepting, with one
// warning, until a descriptor is free. Open connections go on.
//
// The connections are in an epoll set, of which the loop sees one descriptor. As Asio sockets they would cost one more
// system call per request and ten times the memory.
//
// Loop thread only. The server may be destroyed or closed at any time, also inside `foreign`.
#pragma once

#include <boost/asio/io_context.hpp>
#include <boost/asio/ip/tcp.hpp>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <string_view>

#include "base/descriptors.h"
#include "base/status.h"

namespace muster::store {

struct StoreOptions {
  // Gets connections whose first byte is that of HTTP/2 or TLS, with the bytes read so far, so that another protocol
  // can share the port. Empty: such connections are closed.
  std::function<void(boost::asio::ip::tcp::socket, std::string first_bytes)> foreign;
  KeptDescriptors keep_descriptors;  // at most half of ulimit -n
  // And these for connections to other ports and to `foreign`, at most an eighth of ulimit -n. If another protocol
  // shares the port, a client for which there are only these left is closed when it speaks the store's protocol.
  int keep_for_ports = 0;
};

struct StoreCounters {
  uint64_t accepted = 0;
  uint64_t open = 0;        // connections now
  uint64_t operations = 0;  // requests done
  uint64_t violations = 0;  // connections closed for a violation of the protocol
  uint64_t foreign = 0;     // connections of another protocol, handed over or closed
  uint64_t pauses = 0;      // times that accepting stopped because no descriptor was left
};

class StoreServer {
 public:
  // `host`, `port` and errors as OpenListener's (listener.h).
  static StatusOr<std::unique_ptr<StoreServer>> Listen(boost::asio::io_context& io, std::string_view host,
                                                       uint16_t port, StoreOptions options = {});
  ~StoreServer();

  uint16_t port() const;
  // Removes all keys and closes every connection, also those that wait to be accepted, so that a new round sees nothing
  // of the last one. The server keeps listening on its port.
  void NewKeySpace();
  // Stops listening and closes every connection.
  void Close();
  StoreCounters counters() const;

  class State;  // server.cc

 private:
  explicit StoreServer(std::shared_ptr<State> state);
  std::shared_ptr<State> state_;
};

}  // namespace muster::store

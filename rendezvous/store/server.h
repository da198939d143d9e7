// A TCPStore server for PyTorch clients of every generation, on the caller's loop.
//
// It never blocks: a client that is slow, half-open or does not read delays nobody. While a client does not read its
// answers nothing more is read from it, so at most one answer (kMaxAnswer) and one read are held for it; one that
// watches keys and does not read is closed when more than 1 MiB of events waits for it. An idle connection costs some
// tens of bytes here. A violation closes that connection only. No name is ever looked up. Where no descriptor is left,
// accepting pauses, which one warning says, and goes on when there is one again; nobody who is connected notices.
//
// Connections are kept in an epoll set of the server's own, of which the loop sees one descriptor: a socket known to
// Asio costs a rearming system call per request and ten times the memory.
//
// All members are called on the loop's thread. The server may be destroyed or closed at any time, also inside
// `foreign`.
#pragma once

#include <boost/asio/io_context.hpp>
#include <boost/asio/ip/tcp.hpp>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <string_view>

#include "base/status.h"

namespace muster::store {

struct StoreOptions {
  // Takes connections whose first byte is HTTP/2's or TLS's, with the bytes that were read already, so that one port
  // can serve something else too. Without it they are closed.
  std::function<void(boost::asio::ip::tcp::socket, std::string first_bytes)> foreign;
  // Descriptors that connections never take (at most an eighth of what ulimit -n allows): a crowd must not keep the
  // rest of the process from opening a file.
  int keep_descriptors = 0;
};

struct StoreCounters {
  uint64_t accepted = 0;
  uint64_t open = 0;        // connections now
  uint64_t operations = 0;  // requests done
  uint64_t violations = 0;  // connections closed for what they sent
  uint64_t foreign = 0;     // connections handed over, or closed for want of a taker
  uint64_t pauses = 0;      // times that accepting paused for want of descriptors
};

class StoreServer {
 public:
  // `host`, `port` and errors as OpenListener's (listener.h).
  static StatusOr<std::unique_ptr<StoreServer>> Listen(boost::asio::io_context& io, std::string_view host,
                                                       uint16_t port, StoreOptions options = {});
  ~StoreServer();

  uint16_t port() const;
  // Closes every connection, those that wait to be accepted too, and starts with no key: a new round sees nothing of
  // the last one. The port stays.
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

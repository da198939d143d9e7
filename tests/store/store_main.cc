// SPDX-License-Identifier: Apache-2.0
// Only a store, for tests and benchmarks: store_main [HOST [PORT]]. Ends when its standard input ends.
#include <cstdio>
#include <cstdlib>
#include <string>

#include <boost/asio/io_context.hpp>
#include <boost/asio/posix/stream_descriptor.hpp>

#include "base/text.h"
#include "rendezvous/store/server.h"

int main(int argc, char** argv) {
  boost::asio::io_context io(1);
  std::string host = argc > 1 ? argv[1] : "127.0.0.1";
  auto server = muster::store::StoreServer::Listen(io, host, static_cast<uint16_t>(argc > 2 ? std::atoi(argv[2]) : 0));
  if (!server.ok()) {
    fmt::print(stderr, "{}\n", muster::Message(server.status()));
    return 1;
  }
  fmt::print("listening on {}:{}\n", host, (*server)->port());
  std::fflush(stdout);
  boost::asio::posix::stream_descriptor input(io, 0);
  char byte[64];
  std::function<void()> read = [&] {
    input.async_read_some(boost::asio::buffer(byte), [&](boost::system::error_code error, size_t) {
      if (error) return io.stop();
      read();
    });
  };
  read();
  io.run();
}

// SPDX-License-Identifier: Apache-2.0
#include "agent/port_relay.h"

#include <gtest/gtest.h>

#include <boost/asio/connect.hpp>
#include <boost/asio/read.hpp>
#include <boost/asio/write.hpp>
#include <thread>

namespace muster::agent {
namespace {

namespace asio = boost::asio;
using asio::ip::tcp;

// A pair of connected sockets over loopback.
struct Ends {
  explicit Ends(asio::io_context& loop) : near(loop), far(loop) {
    tcp::acceptor acceptor(loop, {asio::ip::address_v4::loopback(), 0});
    near.connect(acceptor.local_endpoint());
    acceptor.accept(far);
  }
  tcp::socket near;
  tcp::socket far;
};

class PortRelayTest : public testing::Test {
 protected:
  PortRelayTest() : server(loop, {asio::ip::address_v4::loopback(), 0}) {}
  ~PortRelayTest() override {
    loop.stop();
    runner.join();
  }
  int port() { return server.local_endpoint().port(); }
  // Hands the far end to the loop.
  void Relay(Ends& client, const std::string& first_bytes, int to) {
    asio::post(loop, [this, fd = client.far.release(), first_bytes, to] {
      RelayToLocalPort(loop, tcp::socket(loop, tcp::v4(), fd), first_bytes, to);
    });
  }
  std::string Read(tcp::socket& socket, size_t size) {
    std::string text(size, '\0');
    boost::system::error_code error;
    text.resize(asio::read(socket, asio::buffer(text), error));
    return text;
  }

  asio::io_context loop;
  asio::executor_work_guard<asio::io_context::executor_type> work{loop.get_executor()};
  tcp::acceptor server;
  std::thread runner{[this] { loop.run(); }};
};

TEST_F(PortRelayTest, CarriesBothWaysFirstBytesFirst) {
  asio::io_context test;
  Ends client(test);
  Relay(client, "PRI * ", port());
  tcp::socket accepted(test);
  server.accept(accepted);
  asio::write(client.near, asio::buffer(std::string("HTTP/2.0")));
  EXPECT_EQ(Read(accepted, 14), "PRI * HTTP/2.0");
  std::string large(1 << 20, 'x');
  std::thread answer([&] { asio::write(accepted, asio::buffer(large)); });
  EXPECT_EQ(Read(client.near, large.size()), large);
  answer.join();
  client.near.close();
  EXPECT_EQ(Read(accepted, 1), "");  // when one end closes, the other is closed
}

TEST_F(PortRelayTest, ClosesTheClientIfNobodyListens) {
  int closed = port();
  server.close();
  asio::io_context test;
  Ends client(test);
  Relay(client, "PRI", closed);
  EXPECT_EQ(Read(client.near, 1), "");
}

}  // namespace
}  // namespace muster::agent

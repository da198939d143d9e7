// SPDX-License-Identifier: Apache-2.0
#include "agent/port_relay.h"

#include <array>
#include <boost/asio/buffer.hpp>
#include <boost/asio/write.hpp>
#include <memory>

namespace muster::agent {
namespace {

namespace asio = boost::asio;
using asio::ip::tcp;

struct Relay : std::enable_shared_from_this<Relay> {
  struct Way {
    tcp::socket& from;
    tcp::socket& to;
    std::array<char, 16384> buffer;
  };

  Relay(asio::io_context& loop, tcp::socket accepted) : client(std::move(accepted)), server(loop) {}

  void Receive(Way& way) {
    way.from.async_read_some(asio::buffer(way.buffer),
                             [self = shared_from_this(), &way](boost::system::error_code error, size_t size) {
                               if (error) return self->Close();
                               self->SendOn(way, size);
                             });
  }

  void SendOn(Way& way, size_t size) {
    asio::async_write(way.to, asio::buffer(way.buffer.data(), size),
                      [self = shared_from_this(), &way](boost::system::error_code error, size_t) {
                        if (error) return self->Close();
                        self->Receive(way);
                      });
  }

  void Close() {
    boost::system::error_code ignored;
    client.close(ignored);
    server.close(ignored);
  }

  tcp::socket client;
  tcp::socket server;
  Way up{client, server, {}};
  Way down{server, client, {}};
  std::string first_bytes;
};

}  // namespace

void RelayToLocalPort(asio::io_context& loop, tcp::socket client, std::string first_bytes, int port) {
  auto relay = std::make_shared<Relay>(loop, std::move(client));
  relay->first_bytes = std::move(first_bytes);
  tcp::endpoint target(asio::ip::address_v4::loopback(), static_cast<uint16_t>(port));
  relay->server.async_connect(target, [relay](boost::system::error_code error) {
    if (error) return relay->Close();
    boost::system::error_code ignored;
    relay->client.set_option(tcp::no_delay(true), ignored);
    relay->server.set_option(tcp::no_delay(true), ignored);
    asio::async_write(relay->server, asio::buffer(relay->first_bytes),
                      [relay](boost::system::error_code failed, size_t) {
                        if (failed) return relay->Close();
                        relay->Receive(relay->up);
                        relay->Receive(relay->down);
                      });
  });
}

}  // namespace muster::agent

// SPDX-License-Identifier: Apache-2.0
// Takes a port on IPv6 alone, for tests of servers that listen on every address.
#pragma once

#include <boost/asio/io_context.hpp>
#include <boost/asio/ip/tcp.hpp>
#include <boost/asio/ip/v6_only.hpp>
#include <optional>

namespace muster {

// Listens on a free port. nullopt: this machine has no IPv6.
inline std::optional<boost::asio::ip::tcp::acceptor> TakeIpv6Port(boost::asio::io_context& loop) {
  namespace ip = boost::asio::ip;
  ip::tcp::acceptor taken(loop);
  boost::system::error_code error;
  taken.open(ip::tcp::v6(), error);
  if (!error) taken.set_option(ip::v6_only(true), error);
  if (!error) taken.bind({ip::address_v6::any(), 0}, error);
  if (!error) taken.listen(1, error);
  if (error) return std::nullopt;
  return taken;
}

}  // namespace muster

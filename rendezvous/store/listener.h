// SPDX-License-Identifier: Apache-2.0
// Opens the socket that a store's clients connect to.
#pragma once

#include <boost/asio/io_context.hpp>
#include <boost/asio/ip/tcp.hpp>
#include <cstdint>
#include <optional>
#include <string_view>

#include "base/descriptors.h"
#include "base/status.h"

namespace muster::store {

struct Listener {
  Descriptor socket;  // listens, does not block; accepted connections have its options
  uint16_t port = 0;
};

// `host`: a numeric address, "localhost", or "" for every address, IPv6 and IPv4. Port 0: the kernel chooses.
// InvalidArgument: `host` is not an address; AlreadyExists: the port is taken; other errors name the failed system
// call.
StatusOr<Listener> OpenListener(std::string_view host, uint16_t port);

// A connection as a socket of Asio. nullopt: the loop cannot watch it, and it is closed.
std::optional<boost::asio::ip::tcp::socket> SocketOf(boost::asio::io_context& loop, Descriptor connection);

}  // namespace muster::store

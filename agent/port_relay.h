// SPDX-License-Identifier: Apache-2.0
// Relays one connection to a port of this process. In the static rendezvous MASTER_PORT is the port of both the store
// and the endpoint, as under torchrun: the store hands on the connections that speak gRPC.
#pragma once

#include <boost/asio/io_context.hpp>
#include <boost/asio/ip/tcp.hpp>
#include <string>

namespace muster::agent {

// Takes `client` over: connects to 127.0.0.1:`port`, sends `first_bytes`, then copies in both directions until one side
// ends, and closes both. Owns itself; its memory is two buffers of 16 KiB. Runs on `loop`.
void RelayToLocalPort(boost::asio::io_context& loop, boost::asio::ip::tcp::socket client, std::string first_bytes,
                      int port);

}  // namespace muster::agent

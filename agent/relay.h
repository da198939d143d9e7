// Carries the bytes of one connection to a port of this process and back: the static rendezvous has one port for two
// protocols (MASTER_PORT is the store's and the endpoint's, as torchrun's static rendezvous promises), and the store
// gives away the connections that speak gRPC.
#pragma once

#include <boost/asio/io_context.hpp>
#include <boost/asio/ip/tcp.hpp>
#include <string>

namespace muster::agent {

// Takes `client` over: connects to 127.0.0.1:`port`, sends `first_bytes`, then carries both ways until one side ends,
// which closes both. Owns itself; its memory is two buffers of 16 KiB. Runs on `loop`.
void RelayToLocalPort(boost::asio::io_context& loop, boost::asio::ip::tcp::socket client, std::string first_bytes,
                      int port);

}  // namespace muster::agent

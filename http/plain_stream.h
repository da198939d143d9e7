// SPDX-License-Identifier: Apache-2.0
// The bytes of a TCP connection without TLS, for http/server.h. Loop thread only.
#pragma once

#include <boost/asio/ip/tcp.hpp>
#include <memory>

#include "http/server_stream.h"

namespace muster::http {

std::unique_ptr<ServerStream> MakePlainStream(boost::asio::ip::tcp::socket socket);

}  // namespace muster::http

// SPDX-License-Identifier: Apache-2.0
// A link to a coordinator in another process: resolve, connect, one gRPC stream. See link.h, grpc_channel.h.
#pragma once

#include <boost/asio/io_context.hpp>
#include <memory>
#include <string>

#include "net/credentials.h"
#include "net/grpc_queue.h"
#include "net/resolver.h"
#include "rendezvous/link.h"

namespace grpc {
class Channel;
}

namespace muster::rendezvous {

// Connects to "host:port" within `limit`. `queue`, `resolver` outlive the link.
std::unique_ptr<Link> DialGrpc(boost::asio::io_context& loop, net::GrpcQueue& queue, net::Resolver& resolver,
                               const std::string& address, const net::Credentials& credentials, Duration limit,
                               Link::Events events);

// Only the last step: a stream on an open connection. tests/bench/rendezvous_load.cc shares one among many links.
std::shared_ptr<grpc::Channel> ChannelOn(int fd, const std::string& address);
std::unique_ptr<Link> TalkOn(net::GrpcQueue& queue, const std::shared_ptr<grpc::Channel>& channel,
                             const std::string& token, Link::Events events);

}  // namespace muster::rendezvous

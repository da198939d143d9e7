// The conversation with a coordinator elsewhere: resolve, connect, one gRPC stream. See link.h, grpc_channel.h.
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

// The second half alone: a stream on a connection that exists (the load generator shares one among many).
std::shared_ptr<grpc::Channel> ChannelOn(int fd, const std::string& address);
std::unique_ptr<Link> TalkOn(net::GrpcQueue& queue, const std::shared_ptr<grpc::Channel>& channel,
                             const std::string& token, Link::Events events);

}  // namespace muster::rendezvous

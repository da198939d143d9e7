// The conversation with a coordinator elsewhere: resolve, connect, one gRPC stream. See link.h, grpc_channel.h.
#pragma once

#include <boost/asio/io_context.hpp>
#include <memory>
#include <string>

#include "rendezvous/credentials.h"
#include "rendezvous/grpc_queue.h"
#include "rendezvous/link.h"
#include "rendezvous/resolver.h"

namespace grpc {
class Channel;
}

namespace muster::rendezvous {

// Connects to "host:port" within `limit`. `queue`, `resolver` outlive the link.
std::unique_ptr<Link> DialGrpc(boost::asio::io_context& loop, GrpcQueue& queue, Resolver& resolver,
                               const std::string& address, const Credentials& credentials, Duration limit,
                               Link::Events events);

// The second half alone: a stream on a connection that exists (the load generator shares one among many).
std::shared_ptr<grpc::Channel> ChannelOn(int fd, const std::string& address);
std::unique_ptr<Link> TalkOn(GrpcQueue& queue, const std::shared_ptr<grpc::Channel>& channel, const std::string& token,
                             Link::Events events);

}  // namespace muster::rendezvous

// The conversation with a coordinator elsewhere: resolve, connect, one gRPC stream. See link.h.
//
// The connection is made here and handed to gRPC, so that its failure has its exact reason and nothing is retried
// behind our back; with TLS a probe finds the reason and gRPC then connects by itself to the same numeric address.
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

// A queue for links' calls. One serves all links of a process.
std::unique_ptr<GrpcQueue> MakeLinkQueue(boost::asio::io_context& loop);

// Connects to "host:port" within `limit`. `queue`, `resolver` outlive the link.
std::unique_ptr<Link> DialGrpc(boost::asio::io_context& loop, GrpcQueue& queue, Resolver& resolver,
                               const std::string& address, const Credentials& credentials, Duration limit,
                               Link::Events events);

// The second half alone: a stream on a connection that exists (the load generator shares one among many).
std::shared_ptr<grpc::Channel> ChannelOn(int fd, const std::string& address);
std::unique_ptr<Link> TalkOn(GrpcQueue& queue, const std::shared_ptr<grpc::Channel>& channel, const std::string& token,
                             Link::Events events);

}  // namespace muster::rendezvous

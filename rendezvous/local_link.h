// SPDX-License-Identifier: Apache-2.0
// A link to a coordinator in this process: no gRPC, no socket, no thread. See link.h.
#pragma once

#include <boost/asio/io_context.hpp>
#include <memory>

#include "rendezvous/coordinator.h"
#include "rendezvous/link.h"

namespace muster::rendezvous {

// The link may outlive `coordinator` (say, in the queue of a stopped loop). It does nothing then.
std::unique_ptr<Link> DialLocally(boost::asio::io_context& loop, Coordinator& coordinator, Link::Events events);

}  // namespace muster::rendezvous

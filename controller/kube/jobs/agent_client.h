// SPDX-License-Identifier: Apache-2.0
// One GET of a plain-HTTP answer from an agent, over a connection of its own that ends with the request. Loop thread
// only.
//
// A request that waits has a socket and a timer, but no buffer: with the rest that AgentAsks keeps of a job it takes
// 1.4 KB. That is why it is not http::Client, whose requests take 15 KB (a handle of libcurl alone 5.5 KB), and which
// keeps connections. Agents are untrusted: a silent, slow or endless one ends at a limit, and has one short read in a
// turn of the loop.
#pragma once

#include <boost/asio/io_context.hpp>
#include <cstddef>
#include <functional>
#include <memory>
#include <string>

#include "base/clock.h"
#include "base/status.h"

namespace muster::controller {

class AgentClient {
 public:
  struct Limits {
    Duration connect = std::chrono::seconds(2);
    Duration answer = std::chrono::seconds(5);      // from its first byte to its last
    Duration dead_peer = std::chrono::seconds(10);  // a peer that acknowledges nothing for so long is gone
    size_t longest = size_t{1} << 20;               // bytes of a body
    size_t memory = size_t{64} << 20;               // bytes of all answers that are not whole yet
  };
  struct Answer {
    int status = 0;
    std::string body;
  };
  // An error says why no whole answer came. The call may destroy the request.
  using Answered = std::function<void(StatusOr<Answer> answer)>;

  AgentClient(boost::asio::io_context& loop, Limits limits) : loop_(loop), limits_(limits) {}
  AgentClient(const AgentClient&) = delete;
  AgentClient& operator=(const AgentClient&) = delete;

  // Asks for `url`, "http://ADDRESS:PORT/PATH" with a numeric address, and waits for the first byte of the answer until
  // `patience` has passed. Never calls `answered` before it returns. Destroying what is returned closes the connection
  // without a call. The client must outlive it.
  std::shared_ptr<void> Ask(const std::string& url, Duration patience, Answered answered);

 private:
  class Request;

  boost::asio::io_context& loop_;
  const Limits limits_;
  size_t held_ = 0;  // bytes of all answers that are not whole yet
};

}  // namespace muster::controller

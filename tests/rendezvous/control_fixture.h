// SPDX-License-Identifier: Apache-2.0
// A coordinator on loopback, and nodes with real links to it. Everything runs on one loop. Tests wait for events, never
// for a time.
#pragma once

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <boost/asio/io_context.hpp>
#include <boost/asio/steady_timer.hpp>
#include <deque>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "base/text.h"
#include "base/version.h"
#include "net/grpc_channel.h"
#include "rendezvous/coordinator.h"
#include "rendezvous/coordinator_service.h"
#include "rendezvous/grpc_link.h"
#include "rendezvous/local_link.h"

namespace muster::rendezvous {

// A node that records what it hears on its link.
class Caller {
 public:
  Link::Events events() {
    Link::Events events;
    events.connected = [this] {
      connected = true;
      if (first) link->Send(*first);
    };
    events.message = [this](CoordinatorMessage message) { heard.push_back(std::move(message)); };
    events.closed = [this](attendance::Loss loss, const std::string& detail) {
      lost = loss;
      why = detail;
    };
    return events;
  }

  // The first message of that kind, or null.
  template <typename Message>
  const Message* Find() const {
    for (const CoordinatorMessage& message : heard) {
      if (const auto* found = std::get_if<Message>(&message)) return found;
    }
    return nullptr;
  }
  template <typename Message>
  const Message* Last() const {
    const Message* last = nullptr;
    for (const CoordinatorMessage& message : heard) {
      if (const auto* found = std::get_if<Message>(&message)) last = found;
    }
    return last;
  }

  std::optional<NodeMessage> first;  // sent as soon as the link is connected
  std::unique_ptr<Link> link;
  bool connected = false;
  std::vector<CoordinatorMessage> heard;
  std::optional<attendance::Loss> lost;
  std::string why;
};

class ControlFixture : public testing::Test {
 protected:
  // Runs the loop until `done`; fails after a minute.
  void Until(const std::function<bool()>& done, const char* what) {
    boost::asio::steady_timer limit(loop_, std::chrono::seconds(60));
    auto late = std::make_shared<bool>(false);  // the handler of a cancelled wait runs later
    limit.async_wait([late](const boost::system::error_code& error) { *late = !error; });
    while (!done() && !*late) {
      if (loop_.stopped()) loop_.restart();
      loop_.run_one();
    }
    limit.cancel();
    ASSERT_FALSE(*late) << "waited in vain for " << what;
  }

  void Serve(CoordinatorService::Options options = {}, const Coordinator::Options& coordinator = {}) {
    if (options.host.empty()) options.host = "127.0.0.1";
    coordinator_ = std::make_unique<Coordinator>(loop_, coordinator);
    StatusOr<std::unique_ptr<CoordinatorService>> served = CoordinatorService::Serve(loop_, *coordinator_, options);
    ASSERT_TRUE(served.ok()) << served.status();
    service_ = *std::move(served);
    address_ = fmt::format("127.0.0.1:{}", service_->port());
  }

  std::unique_ptr<Caller> Dial(std::optional<NodeMessage> first, const net::Credentials& credentials = {}) {
    return DialTo(address_, std::move(first), credentials);
  }
  std::unique_ptr<Caller> DialTo(const std::string& address, std::optional<NodeMessage> first,
                                 const net::Credentials& credentials = {}) {
    if (queue_ == nullptr) queue_ = net::MakeCallQueue(loop_);
    auto caller = std::make_unique<Caller>();
    caller->first = std::move(first);
    caller->link =
        DialGrpc(loop_, *queue_, resolver_, address, credentials, std::chrono::seconds(30), caller->events());
    return caller;
  }

  static JobOptions Job(int min, int max, int restarts = 0) {
    JobOptions options;
    options.min_nodes = min;
    options.max_nodes = max;
    options.max_restarts = restarts;
    options.last_call = std::chrono::seconds(0);
    return options;
  }
  static Hello Greeting(const std::string& name, const JobOptions& options, const std::string& run_id = "job") {
    Hello hello;
    hello.protocol = kRendezvousProtocol;
    hello.version = "test";
    hello.run_id = run_id;
    hello.node.name = name;
    hello.node.incarnation = name + "-1";
    hello.node.slots = 2;
    hello.node.host = name;
    hello.node.pid = 1;
    hello.node.store_host = "127.0.0.1";
    hello.node.store_port = 4000;
    hello.options = options;
    return hello;
  }

  boost::asio::io_context loop_;
  net::Resolver resolver_{loop_};
  std::unique_ptr<net::GrpcQueue> queue_;
  std::unique_ptr<Coordinator> coordinator_;
  std::unique_ptr<CoordinatorService> service_;
  std::string address_;
};

}  // namespace muster::rendezvous

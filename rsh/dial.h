// SPDX-License-Identifier: Apache-2.0
// Makes a channel to "host:port". Tries again until it succeeds, since pods start in any order. Loop thread only.
#pragma once

#include <grpcpp/support/status.h>

#include <boost/asio/io_context.hpp>
#include <functional>
#include <memory>
#include <string>

#include "base/clock.h"
#include "net/credentials.h"
#include "net/resolver.h"

namespace grpc {
class Channel;
}

namespace muster::rsh {

// True if the next stream would end the same way: wrong token or version, or a message beyond the limit.
bool IsRefusal(const grpc::Status& status);

class Dialling {
 public:
  struct Events {
    std::function<void(std::shared_ptr<grpc::Channel>)> connected;
    // The deadline has passed. `obstacle`: the last error. Once, the last call.
    std::function<void(const std::string& obstacle)> gave_up;
    // Why there is no channel yet, whenever that changes. Optional.
    std::function<void(const std::string& obstacle)> waiting;
  };
  // Calls back on the loop, never from within Start. Destruction ends it. `deadline`: TimePoint::max() is never.
  static std::unique_ptr<Dialling> Start(boost::asio::io_context& loop, net::Resolver& resolver,
                                         const std::string& address, const net::Credentials& credentials,
                                         TimePoint deadline, Events events);
  virtual ~Dialling() = default;
  // The channel did not work: tries again after a pause that grows each time. May call `gave_up` from within.
  virtual void Again(const std::string& obstacle) = 0;
};

}  // namespace muster::rsh

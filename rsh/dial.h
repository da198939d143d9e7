// A channel to "host:port", tried again until there is one: pods start in any order. Loop thread only.
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

// How a stream ended says that the next one would end so too: token, TLS, version, or a message beyond the limit.
bool IsRefusal(const grpc::Status& status);

class Dialling {
 public:
  struct Events {
    std::function<void(std::shared_ptr<grpc::Channel>)> connected;
    // The deadline has passed; what stood in the way last. Once; the end of it.
    std::function<void(const std::string& obstacle)> gave_up;
    // What stands in the way, whenever that changes. Optional.
    std::function<void(const std::string& obstacle)> waiting;
  };
  // Calls back on the loop, never from within. Destroying it drops it. `deadline`: TimePoint::max() is never.
  static std::unique_ptr<Dialling> Start(boost::asio::io_context& loop, net::Resolver& resolver,
                                         const std::string& address, const net::Credentials& credentials,
                                         TimePoint deadline, Events events);
  virtual ~Dialling() = default;
  // The channel was of no use: tries again after a pause that grows each time. May call `gave_up` from within.
  virtual void Again(const std::string& obstacle) = 0;
};

}  // namespace muster::rsh

// SPDX-License-Identifier: Apache-2.0
// The launcher's streams to its worker pods: one to each, for as long as the job lasts, to tell them how it ended. Loop
// thread only; the queue and the resolver must outlive it.
#pragma once

#include <boost/asio/io_context.hpp>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "base/clock.h"
#include "net/credentials.h"
#include "net/grpc_queue.h"
#include "net/resolver.h"
#include "rsh/protocol.h"

namespace muster::rsh {

class Workers {
 public:
  struct Options {
    std::vector<std::string> addresses;  // "host:port"
    // Names of this machine among the job's hosts. A worker pod may serve there, or none if the launcher itself is a
    // host. Such an address is neither waited for nor named if it was never reached.
    std::vector<std::string> of_this_machine;
    net::Credentials credentials;
    std::string launcher;  // for people: this host
  };
  struct Events {
    // A worker that was reached is gone; it is dialled again.
    std::function<void(const std::string& address, const std::string& detail)> lost;
    // A worker refuses the launcher: token, version. It is not dialled again.
    std::function<void(const std::string& address, const std::string& detail)> refused;
  };

  // Dials every worker until it is reached.
  Workers(boost::asio::io_context& loop, net::GrpcQueue& queue, net::Resolver& resolver, Options options,
          Events events);
  ~Workers();
  Workers(const Workers&) = delete;
  Workers& operator=(const Workers&) = delete;

  // Sends the verdict to every worker, also to one that comes (back) within `limit`. Waits only two seconds if the
  // missing workers were never reached, since an image may use its own remote shell. `done` gets the workers that did
  // not hear the verdict; it is called once, never from within this call.
  void SendVerdict(const Verdict& verdict, Duration limit, std::function<void(std::vector<std::string> deaf)> done);

  // How many workers have answered by now, also if they are gone again.
  size_t reached() const;

 private:
  class Impl;
  std::shared_ptr<Impl> impl_;
};

}  // namespace muster::rsh

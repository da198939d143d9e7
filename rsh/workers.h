// The launcher's conversations with its worker pods: one stream to each for as long as the job lasts, so that they hear
// how it ended. Loop thread only; the queue and the resolver must outlive it.
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
    // Names of this machine among the job's hosts: a worker pod may serve there, or nobody does, because the launcher is
    // a host itself. Who is not there when the verdict comes is neither waited for nor named.
    std::vector<std::string> of_this_machine;
    net::Credentials credentials;
    std::string launcher;  // for people: this host
  };
  struct Events {
    // A worker that was there is gone; it is dialled again.
    std::function<void(const std::string& address, const std::string& detail)> lost;
    // A worker does not let us in: token, TLS, version. It is not dialled again.
    std::function<void(const std::string& address, const std::string& detail)> refused;
  };

  // Dials all of them, each until it is there.
  Workers(boost::asio::io_context& loop, net::GrpcQueue& queue, net::Resolver& resolver, Options options,
          Events events);
  ~Workers();
  Workers(const Workers&) = delete;
  Workers& operator=(const Workers&) = delete;

  // Tells every worker the verdict, those too that come (back) within `limit`; where nobody has ever been, two seconds
  // have to do: an image may keep its own remote shell. `done`, once, never from within this call:
  // those that did not hear it.
  void Tell(const Verdict& verdict, Duration limit, std::function<void(std::vector<std::string> deaf)> done);

 private:
  class Impl;
  std::shared_ptr<Impl> impl_;
};

}  // namespace muster::rsh

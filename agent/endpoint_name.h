// SPDX-License-Identifier: Apache-2.0
// Whether the other pods of a job find the coordinator that this pod serves.
//
// They look up its name. Kubernetes writes the record of a new pod into DNS within a second or two, but after errors of
// its API server it may take minutes, since the controller that does it pauses longer after each error. Meanwhile no
// other node can join, and a stand-in of the pod's predecessor cannot tell that the run goes on elsewhere. So the
// coordinator must not begin with fewer nodes than are wanted before its name leads here.
#pragma once

#include <boost/asio/io_context.hpp>
#include <boost/asio/steady_timer.hpp>
#include <functional>
#include <memory>
#include <string>

#include "agent/rendezvous_place.h"
#include "agent/workers/run_options.h"
#include "net/resolver.h"

namespace muster::agent {

// Whether the question arises: an elastic job of pods, whose endpoint this pod serves by its own name in a domain, such
// as "train-node-0-0.train". (Another name, as of a Service with an address of its own, never has a pod's address.)
bool IsFoundByItsName(const RunOptions::Job& job, const RendezvousPlace& place);

// Loop thread only.
class EndpointName {
 public:
  // Looks `host` up by DNS, once a second, until an address of this machine is among the answers. Calls `told` with why
  // nobody is led here, at once and whenever that changes, and at last with "".
  EndpointName(boost::asio::io_context& loop, std::string host, std::function<void(const std::string& why_not)> told);

 private:
  void Ask();
  void Say(const std::string& why_not);

  const std::string host_;
  const std::function<void(const std::string&)> told_;
  std::string said_;
  net::Resolver resolver_;
  boost::asio::steady_timer timer_;
};

}  // namespace muster::agent

// SPDX-License-Identifier: Apache-2.0
// Drives membership.h for the runs coordinated in this process: applies events, sends messages, keeps timers.
//
// Knows no gRPC: a Peer is a gRPC stream or a local attendant. Loop thread only.
#pragma once

#include <boost/asio/io_context.hpp>
#include <functional>
#include <map>
#include <memory>
#include <string>

#include "rendezvous/membership.h"

namespace muster::rendezvous {

class Coordinator {
 public:
  // The far end of one conversation. Neither method may call the Coordinator back at once.
  class Peer {
   public:
    virtual ~Peer() = default;
    virtual void Send(const CoordinatorMessage& message) = 0;
    virtual void Close() = 0;  // after what was sent
  };

  struct Options {
    std::string self_node;           // node name of this agent; empty for `muster coordinator`
    std::string self_address;        // where this coordinator can be reached, for redirects
    std::string only_run_id;         // refuse other run ids; empty: any number of runs (`muster coordinator`)
    std::string endpoint_hint = "";  // added where nodes are missing; EndpointHint() in base/host_names.h
    bool in_pods = false;            // the nodes are pods of Kubernetes: two never have one host name
  };

  Coordinator(boost::asio::io_context& loop, Options options);
  ~Coordinator();
  Coordinator(const Coordinator&) = delete;
  Coordinator& operator=(const Coordinator&) = delete;

  // A conversation began. `peer` must stay valid until Disconnect(id). `local`: it is this process's own attendant.
  PeerId Connect(Peer* peer, bool local = false);
  // The first message decides what the peer is: Hello, Inspect or Supersede. Any other one is refused and closes it.
  void Receive(PeerId id, const NodeMessage& message);
  void Disconnect(PeerId id);

  // This process becomes the coordinator of `run_id`, as attendance.h decided. An earlier redirect of the run is void.
  void TakeOver(const std::string& run_id, const StandIn& stand_in);

  // A node was refused before its first message (no token, say). `reason`: one sentence that names it, logged once.
  void TurnAway(const std::string& reason);

  // A node that the stand-in of `run_id` misses is gone (membership.h).
  void KnowDead(const std::string& run_id, const Gone& gone);

  // How many nodes each run is meant to have now (Wanted in membership.h).
  void Want(int nodes);
  // Why no other node finds this coordinator yet; empty: they can (Hidden in membership.h).
  void Hide(const std::string& why);

  // Sets Options::self_address once this coordinator's port is known. `on_call`: the address is not the job's endpoint,
  // so this coordinator coordinates nothing before TakeOver.
  void SetPlace(const std::string& address, bool on_call);
  // This process serves the job's endpoint from now on, at `endpoint` ("host:port", numeric), where nobody listened any
  // more. So the process of a coordinator that was reached there is gone.
  void TakeEndpoint(const std::string& endpoint);

  // Calls `done` on the loop once every peer that is not local has gone (all have heard the end), or after `limit`. One
  // at a time.
  void Drain(Duration limit, std::function<void()> done);

  // If `redirect` has a higher term: sends the peers of `run_id`, present and future ones, to its address.
  void Yield(const std::string& run_id, const Redirect& redirect);
  // What a stand-in for `run_id` here tells the agent at the endpoint. Term 0: it is not coordinated here.
  Supersede AsStandIn(const std::string& run_id) const;
  // Expires when this coordinator is destroyed: for callbacks that are still in the loop's queue then.
  std::weak_ptr<void> lifetime() const { return lifetime_; }
  // Called with (run id, sentence) whenever a decision's reason changes.
  void OnReason(std::function<void(const std::string&, const std::string&)> listener);

 private:
  class Impl;
  std::shared_ptr<Impl> impl_;
  std::shared_ptr<void> lifetime_ = std::make_shared<char>();
};

}  // namespace muster::rendezvous

// Drives membership.h for the runs coordinated in this process: applies events, sends what was decided, keeps the
// timers.
//
// Knows no gRPC: a peer is anything that can be sent a message (a gRPC stream, a local attendant). Loop thread only.
#pragma once

#include <boost/asio/io_context.hpp>
#include <functional>
#include <map>
#include <memory>
#include <string>

#include "rendezvous/membership.h"

namespace muster::rendezvous {

class Conductor {
 public:
  // The far end of one conversation. Neither method may call the Conductor back at once.
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
    std::string endpoint_hint = "";  // what is said where nodes do not come; EndpointHint() in base/host_names.h
  };

  Conductor(boost::asio::io_context& loop, Options options);
  ~Conductor();
  Conductor(const Conductor&) = delete;
  Conductor& operator=(const Conductor&) = delete;

  // A conversation began. `peer` must stay valid until Disconnect(id). `local`: it is this process's own attendant.
  PeerId Connect(Peer* peer, bool local = false);
  // The first message decides what the peer is: Hello, Inspect or Supersede. Others before it close the peer.
  void Receive(PeerId id, const NodeMessage& message);
  void Disconnect(PeerId id);

  // This process takes the coordination of `run_id` over (attendance decided so). A Supersede of an older term no
  // longer holds.
  void TakeOver(const std::string& run_id, const StandIn& stand_in);

  // Somebody was refused before his first message (no token, say); one sentence that names him. Each is logged once.
  void TurnAway(const std::string& reason);

  // What a stand-in learns of a node it misses (membership.h).
  void KnowDead(const std::string& run_id, const Gone& gone);

  // So many nodes there are meant to be now, in each run (membership.h).
  void Want(int nodes);

  // Where this coordinator can be reached, once its port is known (Options::self_address). `on_call`: that is not the
  // job's endpoint, so nothing is coordinated here before TakeOver.
  void SetPlace(const std::string& address, bool on_call);

  // Calls `done` on the loop once every peer but local ones (Connect's `local`) has gone, or after `limit`: a host that
  // has told everyone the end waits so until they have heard it. One at a time.
  void Drain(Duration limit, std::function<void()> done);

  // Somebody of a higher term coordinates `run_id`: its peers, and those to come, are sent there. Else nothing happens.
  void Yield(const std::string& run_id, const Redirect& redirect);
  // The term in which `run_id` is coordinated here; 0 if it is not.
  uint64_t TermOf(const std::string& run_id) const;
  // Expires when this conductor goes: for who may be left in the loop's queue then.
  std::weak_ptr<void> lifetime() const { return lifetime_; }
  // Called with (run id, sentence) whenever a decision's reason changes.
  void OnReason(std::function<void(const std::string&, const std::string&)> listener);

 private:
  class Impl;
  std::shared_ptr<Impl> impl_;
  std::shared_ptr<void> lifetime_ = std::make_shared<char>();
};

}  // namespace muster::rendezvous

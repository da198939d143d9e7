// A node's connection to a coordinator, from the node's side.
//
// Loop thread only, callbacks included. A Link never calls back from within one of its own methods. Destroying it drops
// the connection at once; no callback comes after that.
#pragma once

#include <functional>
#include <string>

#include "rendezvous/attendance.h"
#include "rendezvous/messages.h"

namespace muster::rendezvous {

class Link {
 public:
  struct Events {
    std::function<void()> connected;  // Send may be called from now on
    std::function<void(CoordinatorMessage)> message;
    // The dial failed or the connection ended. `detail` says where and why, for people. The last callback.
    std::function<void(attendance::Loss, const std::string& detail)> closed;
  };

  virtual ~Link() = default;
  // Before `connected` and after `closed` the message is dropped.
  virtual void Send(const NodeMessage& message) = 0;
  // Calls `done` when everything sent has been handed to the other side, or can no longer be.
  virtual void Flush(std::function<void()> done) = 0;
};

}  // namespace muster::rendezvous

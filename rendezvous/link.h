// One conversation of a node with a coordinator, from the node's side: dial, say, hear, lose.
//
// A Link is used on the loop thread and calls back on it, never from within one of its own methods. Destroying it drops
// the conversation at once; no callback comes after that.
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
    // The dial failed or the conversation ended. `detail` says where and why, for people. The last call.
    std::function<void(attendance::Loss, const std::string& detail)> closed;
  };

  virtual ~Link() = default;
  // After `connected`; dropped before it and after `closed`.
  virtual void Send(const NodeMessage& message) = 0;
  // Says goodbye: calls `done` when everything sent was handed to the other side, or cannot be any more.
  virtual void Flush(std::function<void()> done) = 0;
};

}  // namespace muster::rendezvous

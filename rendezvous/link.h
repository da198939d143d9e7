// SPDX-License-Identifier: Apache-2.0
// A node's connection to a coordinator, from the node's side.
//
// Loop thread only, callbacks included. A Link calls back from within none of its methods but HangUp. Destroying it
// drops the connection at once; no callback comes after that.
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
  // Stops Send and calls `done` when the other side has received everything sent, or can no longer. A side that neither
  // reads nor closes keeps it waiting: the caller sets a limit. `done` may come within this call.
  virtual void HangUp(std::function<void()> done) = 0;
};

}  // namespace muster::rendezvous

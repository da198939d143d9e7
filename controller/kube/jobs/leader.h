// SPDX-License-Identifier: Apache-2.0
// Leader election by a Lease (lease.h), by the rules of client-go. Loop thread only.
//
// A leader may act until `deadline()`: `renew_deadline` after the start of its last renewal, by the monotonic clock.
// MayAct is called before each write, so a process that was stopped and continued undoes nothing of a new leader. A
// candidate takes a Lease that has not changed for its duration since the candidate saw it. No wall clock is trusted.
#pragma once

#include <boost/asio/io_context.hpp>
#include <functional>
#include <memory>
#include <optional>
#include <string>

#include "base/clock.h"
#include "controller/kube/client/api_client.h"
#include "controller/kube/jobs/lease.h"

namespace muster::controller {

class Leader {
 public:
  struct Events {
    std::function<void()> began;
    // Called once, as the last call. The process should end then: a new process is a new candidate.
    std::function<void(const std::string& why)> lost;
    std::function<void(const std::string& text)> say;  // for the log: the current holder, or an error; when it changes
  };
  // `identity`: never the same for two processes, also one after the other. `client` must outlive this object.
  Leader(boost::asio::io_context& loop, ApiClient& client, std::string ns, std::string name, std::string identity,
         LeaseRules rules, Events events);
  ~Leader();  // does not release the Lease
  Leader(const Leader&) = delete;
  Leader& operator=(const Leader&) = delete;

  void Begin();
  bool MayAct() const;
  std::optional<TimePoint> deadline() const;  // nullopt: it does not lead
  // Releases the Lease, so that the next leader need not wait. MayAct is false from now on. Calls `done` once, within
  // 3 s, even if the Lease could not be released.
  void Release(std::function<void()> done);

 private:
  class Impl;
  std::shared_ptr<Impl> impl_;
};

}  // namespace muster::controller

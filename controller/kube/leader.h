// Leader election by a Lease (lease.h), as client-go does it. Loop thread only.
//
// A leader may act until `deadline()`: its last renewal, by the monotonic clock, plus `renew_deadline`. It asks before
// each write (MayAct), so one that was stopped and woken does nothing that a new leader undid. Others take a lease that
// has not changed for its duration since they first saw it so: nobody's wall clock is trusted.
#pragma once

#include <boost/asio/io_context.hpp>
#include <functional>
#include <memory>
#include <optional>
#include <string>

#include "base/clock.h"
#include "controller/kube/api_client.h"
#include "controller/kube/lease.h"

namespace muster::controller {

class Leader {
 public:
  struct Events {
    std::function<void()> began;
    // Once, the last call; after it the process should end: a new start is a new candidate.
    std::function<void(const std::string& why)> lost;
    std::function<void(const std::string& text)> say;  // whom it waits for, and what fails, when that changes
  };
  // `identity`: no two processes have the same, also one after the other. `client` outlives it.
  Leader(boost::asio::io_context& loop, ApiClient& client, std::string ns, std::string name, std::string identity,
         LeaseRules rules, Events events);
  ~Leader();  // without giving the lease back
  Leader(const Leader&) = delete;
  Leader& operator=(const Leader&) = delete;

  void Begin();
  bool MayAct() const;
  std::optional<TimePoint> deadline() const;  // none: it does not lead
  // For an orderly end: the next one need not wait. Nobody may act from now on; `done` comes once, within 3 s, also
  // where the lease could not be given back.
  void Release(std::function<void()> done);

 private:
  class Impl;
  std::shared_ptr<Impl> impl_;
};

}  // namespace muster::controller

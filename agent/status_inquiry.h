// Asks a coordinator for the facts about its run, once, without keeping anybody waiting: what `muster status` asks, for
// an agent that runs.
//
// Loop thread only. Questions that come while one is under way are answered with it.
#pragma once

#include <boost/asio/io_context.hpp>
#include <functional>
#include <memory>
#include <string>

#include "base/clock.h"
#include "base/status.h"
#include "rendezvous/conductor.h"
#include "rendezvous/credentials.h"

namespace muster::agent {

class StatusInquiry {
 public:
  using Done = std::function<void(StatusOr<rendezvous::StatusReport>)>;

  StatusInquiry(boost::asio::io_context& loop, std::string run_id);
  ~StatusInquiry();  // no `done` is called any more

  // `address`: "host:port", or "" for `conductor` in this process, which must outlive this. Calls `done` once, never
  // from within this call, at the latest after `limit`. Errors say who did not answer, and why.
  void Ask(const std::string& address, rendezvous::Conductor* conductor, const rendezvous::Credentials& credentials,
           Duration limit, Done done);

 private:
  class Impl;
  std::shared_ptr<Impl> impl_;
};

}  // namespace muster::agent

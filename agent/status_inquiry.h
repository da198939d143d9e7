// Asks a coordinator for the facts about its run, without keeping anybody waiting: `muster status`, and an agent that
// runs. The one client for it: goes where a redirect sends it, and, where it follows a run, to the coordinator's
// successor.
//
// Loop thread only. One question at a time; those that come while one is under way are answered with it.
#pragma once

#include <boost/asio/io_context.hpp>
#include <functional>
#include <memory>
#include <string>

#include "base/clock.h"
#include "base/status.h"
#include "net/credentials.h"
#include "rendezvous/conductor.h"

namespace muster::agent {

class StatusInquiry {
 public:
  using Done = std::function<void(StatusOr<rendezvous::StatusReport>)>;

  // `run_id`: empty: the only run there is.
  StatusInquiry(boost::asio::io_context& loop, std::string run_id);
  ~StatusInquiry();  // nothing is called any more

  // `address`: "host:port", or "" for `conductor` in this process, which must outlive this. Calls `done` once, never
  // from within this call, at the latest after `limit`. Errors say who did not answer, and why: InvalidArgument: the
  // question is at fault; Unauthenticated; NotFound: no such run there; DeadlineExceeded and Unavailable: nobody there.
  void Ask(const std::string& address, rendezvous::Conductor* conductor, const net::Credentials& credentials,
           Duration limit, Done done);

  struct Follower {
    std::function<void(const rendezvous::StatusReport&)> told;  // at every change
    std::function<void(const std::string&)> say;                // why nothing is told just now; one sentence
    std::function<void(Status)> over;                           // once, the last call; OK: the run has ended
  };
  // The first sign of life must come within `limit`; a run that is not there yet is waited for. A coordinator that is
  // lost while the run goes on is looked for at the endpoint and at the nodes of the last report: over(Aborted) where
  // none is found in time.
  void Follow(const std::string& address, const net::Credentials& credentials, Duration limit, Follower follower);

 private:
  class Impl;
  std::shared_ptr<Impl> impl_;
};

}  // namespace muster::agent

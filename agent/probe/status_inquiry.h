// SPDX-License-Identifier: Apache-2.0
// Asks a coordinator for the facts about its run, without blocking the loop: for `muster status`, and for a running
// agent. Follows redirects and, in Follow(), goes on to the coordinator's successor.
//
// Loop thread only. One question at a time: an Ask() during another one gets the same answer.
#pragma once

#include <boost/asio/io_context.hpp>
#include <functional>
#include <memory>
#include <string>

#include "base/clock.h"
#include "base/status.h"
#include "net/credentials.h"
#include "rendezvous/coordinator.h"

namespace muster::agent {

// A coordinator that a node attends.
struct Attended {
  bool any = false;     // this node attends a coordinator now
  std::string address;  // then; empty: `local`
  rendezvous::Coordinator* local = nullptr;
  const net::Credentials* credentials = nullptr;
};

class StatusInquiry {
 public:
  using Done = std::function<void(StatusOr<rendezvous::StatusReport>)>;

  // An empty `run_id` means the only run that the coordinator has. `telemetry`: the reports have that of the nodes, too
  // (Inspect in rendezvous/messages.h).
  StatusInquiry(boost::asio::io_context& loop, std::string run_id, bool telemetry = false);
  ~StatusInquiry();  // no callback comes after it

  // `address`: "host:port", or "" for `coordinator` in this process, which must outlive this. Calls `done` once, never
  // from within this call, after `limit` at the latest. Errors name the coordinator and the reason: InvalidArgument
  // (the question is wrong), FailedPrecondition (bad configuration), Unauthenticated, NotFound (no such run there),
  // DeadlineExceeded and Unavailable (no answer).
  void Ask(const std::string& address, rendezvous::Coordinator* coordinator, const net::Credentials& credentials,
           Duration limit, Done done);

  struct Follower {
    std::function<void(const rendezvous::StatusReport&)> told;  // at every change
    std::function<void(const std::string&)> say;                // why no report comes now; one sentence
    std::function<void(Status)> over;                           // once, the last call; OK: the run has ended
  };
  // `address`, `coordinator`: as for Ask. The coordinator must answer within `limit`; a run that is not there yet is
  // waited for. If the coordinator is lost
  // later, looks for a successor at the nodes of the last report and the endpoint for 60 s; then over(Aborted).
  void Follow(const std::string& address, rendezvous::Coordinator* coordinator, const net::Credentials& credentials,
              Duration limit, Follower follower);

 private:
  class Impl;
  std::shared_ptr<Impl> impl_;
};

}  // namespace muster::agent

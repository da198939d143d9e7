// SPDX-License-Identifier: Apache-2.0
// Brings the newest LiveView of a run, once a second: from its coordinator, or from an agent's HTTP port. Loop thread
// only.
#pragma once

#include <boost/asio/io_context.hpp>
#include <functional>
#include <memory>
#include <string>

#include "agent/live/live_view.h"
#include "agent/live/top_places.h"
#include "net/credentials.h"

namespace muster::agent {

// No event may destroy the source.
struct TopEvents {
  std::function<void(LiveView)> view;
  std::function<void(const std::string&)> say;  // why no view comes now; one sentence
  // The last call. OK: the run has ended. The errors are those of StatusInquiry::Follow:
  // after the first view, Aborted if none has come for 60 s.
  std::function<void(Status)> over;
};

class TopSource {
 public:
  virtual ~TopSource() = default;  // only after the loop has stopped
};

// The first view must come within `limit`.
std::unique_ptr<TopSource> FollowCoordinator(boost::asio::io_context& loop, const std::string& address,
                                             const std::string& run_id, const net::Credentials& credentials,
                                             Duration limit, TopEvents events);
// `token`: of the HTTP port (--http-token-file), or empty.
std::unique_ptr<TopSource> AskAgents(boost::asio::io_context& loop, std::unique_ptr<AgentPlaces> places,
                                     const std::string& run_id, const std::string& token, Duration limit,
                                     TopEvents events);

}  // namespace muster::agent

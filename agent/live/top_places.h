// SPDX-License-Identifier: Apache-2.0
// Where the HTTP port of an agent of the run is, for `muster top`: at a fixed address, at a node of a job of `muster
// local`, or behind a port that kubectl forwards. Loop thread only.
#pragma once

#include <boost/asio/io_context.hpp>
#include <functional>
#include <map>
#include <memory>
#include <string>

#include "agent/live/top_target.h"
#include "base/status.h"

namespace muster::agent {

struct AgentPlace {
  std::string host;
  int port = 0;
  bool is_only = false;  // no other agent of the run is known
  std::string ended;     // not empty: the run is over; one sentence
};

class AgentPlaces {
 public:
  using Found = std::function<void(StatusOr<AgentPlace>)>;

  virtual ~AgentPlaces() = default;  // no `found` comes after it
  // Looks for an agent: another one than the last time, if there are several. Calls `found` once; it may call it from
  // within. One call at a time. Errors say in one sentence why there is none now.
  virtual void Find(Found found) = 0;
};

std::unique_ptr<AgentPlaces> OneAgent(const TopTarget& target);

// `folder`: of the job, as base/state_folder.h has it.
std::unique_ptr<AgentPlaces> AgentsOfLocalJob(std::string folder);

// Runs kubectl. The forwarding ends with the object. `pods` is told which pod belongs to which host name.
using PodsByHost = std::map<std::string, std::string>;
std::unique_ptr<AgentPlaces> AgentsInCluster(boost::asio::io_context& loop, const TopTarget& target,
                                             std::string name_space, std::function<void(const PodsByHost&)> pods);

}  // namespace muster::agent

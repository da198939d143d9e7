// SPDX-License-Identifier: Apache-2.0
// Asks the agents of running jobs for the restarts in their pods and for lost nodes (reconcile/agent_status.h), so that
// the controller knows them when they happen. An agent that cannot be reached (a NetworkPolicy, no port) costs nothing
// else: termination messages and Kubernetes tell the same later.
//
// Each job has one request under way, to one agent. It waits for news for kAskWait, and is repeated at once. If the
// agent does not answer, or knows no coordinator, the next one of the job is asked at once; after all of them a pause
// follows, of 1 s at first and of kAskEvery in the end. An agent that answers without waiting (an older one) is asked
// again after kAskEvery. At most 160 requests begin in a second, in turn, and an answer that took long to read is
// followed by a rest: no agent delays another job. The connections take a quarter of the process's descriptors (ulimit
// -n), whose limit the constructor raises as far as the system lets it; further jobs wait for one. A connection ends
// with its request, and so at once when the job is forgotten. No credentials are sent. Loop thread only.
#pragma once

#include <boost/asio/io_context.hpp>
#include <boost/asio/steady_timer.hpp>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "base/clock.h"
#include "controller/kube/jobs/agent_client.h"
#include "controller/reconcile/agent_status.h"

namespace muster::controller {

inline constexpr std::chrono::seconds kAskWait{60};  // the most that an agent allows
inline constexpr Duration kAskEvery = std::chrono::seconds(10);

class AgentAsks {
 public:
  using Said = std::function<void(const std::string& key, std::optional<AgentsSaid> said)>;

  // `said` is called with each answer that has news, and with nullopt when the agent that was asked is not heard any
  // more. It may call Ask and Forget.
  AgentAsks(boost::asio::io_context& loop, Said said);
  AgentAsks(const AgentAsks&) = delete;
  AgentAsks& operator=(const AgentAsks&) = delete;

  // From now on asks one of `whom` for the job `key`: the one that is asked now, else the first. Empty: asks nobody.
  // Ends a pause if `whom` is another list.
  void Ask(const std::string& key, std::vector<AgentToAsk> whom);
  void Forget(const std::string& key) { Ask(key, {}); }

 private:
  struct Asked {
    std::vector<AgentToAsk> whom;
    size_t at = 0;        // in `whom`: the one that is asked
    size_t in_vain = 0;   // how many were asked in vain, one after the other
    int pauses = 0;       // since one was not
    std::string version;  // that it knows; empty: none
    TimePoint begun{};    // of the last request
    TimePoint due{};
    std::shared_ptr<void> request;  // that is under way; null: none
  };

  void Arm();
  void Begin();
  void Came(const std::string& key, const StatusOr<AgentClient::Answer>& came);
  void Next(Asked* asked);

  Said said_;
  const size_t connections_;
  AgentClient client_;
  boost::asio::steady_timer timer_;
  std::map<std::string, Asked> jobs_;
  std::set<std::pair<TimePoint, std::string>> due_;  // jobs without a request under way
  TimePoint next_turn_{};
};

}  // namespace muster::controller

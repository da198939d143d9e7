// Asks the agents of running jobs for the restarts in their pods (reconcile/agent_status.h), so that a job's
// status shows them while they happen. An agent that cannot be reached (a NetworkPolicy, no port) costs nothing else:
// the termination messages tell the same in the end.
//
// Each job is asked at most once in kAskEvery. At most 16 requests are under way, and 160 begin in a second, in turn:
// with very many jobs each is asked less often. No credentials are sent. Loop thread only.
#pragma once

#include <boost/asio/io_context.hpp>
#include <boost/asio/steady_timer.hpp>
#include <functional>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <utility>

#include "base/clock.h"
#include "controller/reconcile/agent_status.h"
#include "http/client.h"

namespace muster::controller {

inline constexpr Duration kAskEvery = std::chrono::seconds(10);

class AgentAsks {
 public:
  using Said = std::function<void(const std::string& key, AgentsSaid said)>;

  // `said` is called with each answer. It may call Ask and Forget.
  AgentAsks(boost::asio::io_context& loop, Said said);
  AgentAsks(const AgentAsks&) = delete;
  AgentAsks& operator=(const AgentAsks&) = delete;

  // From now on asks `whom` for the job `key`; nullopt: asks nobody.
  void Ask(const std::string& key, std::optional<AgentToAsk> whom);
  void Forget(const std::string& key) { Ask(key, std::nullopt); }

 private:
  struct Asked {
    AgentToAsk whom;
    TimePoint due;
    std::shared_ptr<void> answer;  // the request that is under way; null: none
  };

  void Arm();
  void Begin();
  void Came(const std::string& key, const std::string& pod_uid, const std::string& body);

  Said said_;
  http::Client client_;
  boost::asio::steady_timer timer_;
  std::map<std::string, Asked> jobs_;
  std::set<std::pair<TimePoint, std::string>> due_;  // jobs without a request under way
  int under_way_ = 0;
  TimePoint next_turn_{};
};

}  // namespace muster::controller

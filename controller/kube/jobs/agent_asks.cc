// SPDX-License-Identifier: Apache-2.0
#include "controller/kube/jobs/agent_asks.h"

#include <sys/resource.h>

#include <algorithm>

#include "base/log.h"
#include "base/text.h"

namespace muster::controller {
namespace {

constexpr rlim_t kMostConnections = 20'000;
constexpr int kMostInATurn = 16;
constexpr auto kPause = std::chrono::milliseconds(100);  // between two turns, for other work of the loop
constexpr auto kSoon = std::chrono::seconds(1);          // between two requests for one job, whatever the agent answers
constexpr int kMostDoublings = 4;                        // of the pause after all were asked in vain
constexpr auto kSlack = std::chrono::seconds(5);
constexpr int kRestTimes = 300;  // a job rests for so many times what its answer took to read, as in WorkQueue

// A quarter of the descriptors, at most: jobs of each kind have connections, and the API server needs some.
size_t Connections() {
  rlimit limit{};
  if (getrlimit(RLIMIT_NOFILE, &limit) != 0) return 64;
  limit.rlim_cur = limit.rlim_max;
  if (setrlimit(RLIMIT_NOFILE, &limit) != 0) (void)getrlimit(RLIMIT_NOFILE, &limit);
  return static_cast<size_t>(std::min(kMostConnections, limit.rlim_cur / 4));
}

StatusOr<AgentAnswer> Read(const std::string& pod_uid, const StatusOr<AgentClient::Answer>& came) {
  if (!came.ok()) return came.status();
  if (came->status != 200) return absl::UnavailableError(fmt::format("HTTP {}", came->status));
  return ReadAgentStatus(pod_uid, came->body, WallNow());
}

}  // namespace

AgentAsks::AgentAsks(boost::asio::io_context& loop, Said said)
    : said_(std::move(said)),
      connections_(Connections()),
      client_(loop, {.answer = kSlack, .longest = kLongestAgentStatus}),
      timer_(loop) {}

void AgentAsks::Ask(const std::string& key, std::vector<AgentToAsk> whom) {
  const auto known = jobs_.find(key);
  if (known == jobs_.end()) {
    if (whom.empty()) return;
    const TimePoint due = MonotonicClock::now();
    jobs_[key] = {.whom = std::move(whom), .due = due};
    due_.insert({due, key});
    return Arm();
  }
  Asked& asked = known->second;
  const auto now_asked = std::find(whom.begin(), whom.end(), asked.whom[asked.at]);
  if (now_asked != whom.end()) {
    if (whom == asked.whom) return;
    asked.at = static_cast<size_t>(now_asked - whom.begin());
    asked.whom = std::move(whom);
    asked.pauses = 0;
    if (due_.erase({asked.due, key}) == 0) return;  // its request is under way
    asked.due = std::min(asked.due, asked.begun + kSoon);
    due_.insert({asked.due, key});
    return Arm();
  }
  due_.erase({asked.due, key});
  if (whom.empty()) {
    jobs_.erase(known);
  } else {
    asked = {.whom = std::move(whom), .begun = asked.begun, .due = asked.begun + kSoon};
    due_.insert({asked.due, key});
  }
  Arm();
}

void AgentAsks::Arm() {
  timer_.cancel();
  if (due_.empty() || jobs_.size() - due_.size() >= connections_) return;
  timer_.expires_at(std::max(due_.begin()->first, next_turn_));
  timer_.async_wait([this](boost::system::error_code cancelled) {
    if (!cancelled) Begin();
  });
}

void AgentAsks::Begin() {
  const TimePoint now = MonotonicClock::now();
  next_turn_ = now + kPause;
  for (int begun = 0; begun < kMostInATurn && !due_.empty() && due_.begin()->first <= now; ++begun) {
    if (jobs_.size() - due_.size() >= connections_) break;
    const std::string key = due_.begin()->second;
    due_.erase(due_.begin());
    Asked& asked = jobs_.at(key);
    asked.begun = now;
    std::string url = asked.whom[asked.at].url;
    const bool waits = !asked.version.empty();
    if (waits) {
      url += fmt::format("{}after={}&wait={}", url.find('?') == std::string::npos ? '?' : '&', asked.version,
                         kAskWait.count());
    }
    asked.request = client_.Ask(url, kSlack + (waits ? Duration(kAskWait) : Duration::zero()),
                                [this, key](const StatusOr<AgentClient::Answer>& answer) { Came(key, answer); });
  }
  Arm();
}

// The agent is of no use now: the next one is asked.
void AgentAsks::Next(Asked* asked) {
  asked->at = (asked->at + 1) % asked->whom.size();
  asked->version.clear();
  asked->due = MonotonicClock::now();
  if (++asked->in_vain < asked->whom.size()) return;
  asked->in_vain = 0;
  asked->due = asked->begun + std::min<Duration>(kAskEvery, kSoon * (1 << std::min(asked->pauses++, kMostDoublings)));
}

void AgentAsks::Came(const std::string& key, const StatusOr<AgentClient::Answer>& came) {
  Asked& asked = jobs_.at(key);  // a request whose job was forgotten is cancelled
  asked.request.reset();
  std::optional<AgentsSaid> said;
  bool tells = true;
  if (came.ok() && came->status == 304) {
    asked.in_vain = 0;
    asked.pauses = 0;
    asked.due = std::max(MonotonicClock::now(), asked.begun + kSoon);
    tells = false;
  } else {
    const TimePoint begun = MonotonicClock::now();
    const StatusOr<AgentAnswer> answer = Read(asked.whom[asked.at].pod_uid, came);
    const TimePoint read = MonotonicClock::now();
    if (!answer.ok()) log::Debug(fmt::format("{}: its agent: {}", key, Message(answer.status())));
    if (answer.ok()) said = answer->said;
    if (!answer.ok() || !answer->knows) {
      Next(&asked);
    } else {
      const bool waited = !answer->version.empty() && answer->version != asked.version;
      asked.in_vain = 0;
      asked.pauses = 0;
      asked.due = waited ? std::max(read, asked.begun + kSoon) : asked.begun + kAskEvery;
      asked.version = answer->version;
    }
    asked.due = std::max(asked.due, read + std::min<Duration>(kAskEvery, kRestTimes * (read - begun)));
  }
  due_.insert({asked.due, key});
  Arm();
  if (tells) said_(key, std::move(said));
}

}  // namespace muster::controller

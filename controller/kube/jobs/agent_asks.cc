#include "controller/kube/jobs/agent_asks.h"

#include <algorithm>
#include <boost/asio/post.hpp>

#include "base/log.h"
#include "base/text.h"
#include "http/ask.h"

namespace muster::controller {
namespace {

constexpr int kMostAtOnce = 16;
constexpr auto kPause = std::chrono::milliseconds(100);  // between two turns, for other work of the loop

http::Limits ShortLimits() {
  return {.connect = std::chrono::seconds(2), .head = std::chrono::seconds(5), .total = std::chrono::seconds(5)};
}

}  // namespace

AgentAsks::AgentAsks(boost::asio::io_context& loop, Said said)
    : said_(std::move(said)), client_(loop, {.connections = kMostAtOnce}), timer_(loop) {}

void AgentAsks::Ask(const std::string& key, std::optional<AgentToAsk> whom) {
  const auto known = jobs_.find(key);
  if (known != jobs_.end() && whom && known->second.whom == *whom) return;
  TimePoint due = MonotonicClock::now() + kAskEvery;
  if (known != jobs_.end()) {
    due = known->second.due;  // another pod of the job is not asked earlier
    due_.erase({due, key});
    if (known->second.answer) --under_way_;
    jobs_.erase(known);
  }
  if (whom) {
    jobs_[key] = {*std::move(whom), due, nullptr};
    due_.insert({due, key});
  }
  Arm();
}

void AgentAsks::Arm() {
  timer_.cancel();
  if (due_.empty() || under_way_ >= kMostAtOnce) return;
  timer_.expires_at(std::max(due_.begin()->first, next_turn_));
  timer_.async_wait([this](boost::system::error_code cancelled) {
    if (!cancelled) Begin();
  });
}

void AgentAsks::Begin() {
  const TimePoint now = MonotonicClock::now();
  next_turn_ = now + kPause;
  while (!due_.empty() && due_.begin()->first <= now && under_way_ < kMostAtOnce) {
    const std::string key = due_.begin()->second;
    due_.erase(due_.begin());
    Asked& asked = jobs_.at(key);
    asked.due = now + kAskEvery;
    ++under_way_;
    http::Request request{.url = asked.whom.url};
    request.direct = true;
    asked.answer = http::Ask(client_, request, ShortLimits(), kLongestAgentStatus,
                             [this, key, uid = asked.whom.pod_uid](const http::Answer& answer) {
                               const bool whole = answer.end.kind == http::TransferEnd::Kind::kWhole;
                               if (!whole) log::Debug(fmt::format("{}: its agent: {}", key, answer.end.what));
                               Came(key, uid, whole && answer.head.status == 200 ? answer.body : "");
                             });
  }
  Arm();
}

void AgentAsks::Came(const std::string& key, const std::string& pod_uid, const std::string& body) {
  Asked& asked = jobs_.at(key);  // a request whose job was forgotten is cancelled
  // This runs within the request's own callback, which must outlive it.
  boost::asio::post(timer_.get_executor(), [answer = std::move(asked.answer)] {});
  --under_way_;
  due_.insert({asked.due, key});
  Arm();
  if (body.empty()) return;
  auto said = ReadAgentStatus(pod_uid, body);
  if (!said.ok()) return log::Debug(fmt::format("{}: its agent: {}", key, Message(said.status())));
  said_(key, *std::move(said));
}

}  // namespace muster::controller

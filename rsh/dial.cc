// SPDX-License-Identifier: Apache-2.0
#include "rsh/dial.h"

#include <algorithm>
#include <boost/asio/steady_timer.hpp>
#include <random>
#include <utility>

#include "net/connect.h"
#include "net/grpc_channel.h"
#include "rsh/protocol.h"

namespace muster::rsh {
namespace {

namespace asio = boost::asio;
using net::Connecting;

constexpr Duration kFirstPause = std::chrono::milliseconds(20);  // doubled each time, with up to half of it more
constexpr Duration kLongestPause = std::chrono::seconds(1);
constexpr Duration kOneAttempt = std::chrono::seconds(10);

class Dial final : public Dialling {
 public:
  Dial(asio::io_context& loop, net::Resolver& resolver, std::string address, const net::Credentials& credentials,
       TimePoint deadline, Events events)
      : loop_(loop),
        resolver_(resolver),
        address_(std::move(address)),
        credentials_(credentials),
        deadline_(deadline),
        events_(std::move(events)),
        pause_timer_(loop) {
    Try();
  }

  void Again(const std::string& obstacle) override { Failed(obstacle); }

 private:
  void Try() {
    Duration limit = std::min<Duration>(kOneAttempt, deadline_ - MonotonicClock::now());
    connecting_ = Connecting::Start(loop_, resolver_, address_, std::max<Duration>(limit, std::chrono::milliseconds(1)),
                                    {[this](const Connecting::Connected& connected) { Connected(connected); },
                                     [this](const Connecting::Failed& failed) { Failed(failed.detail); }});
  }

  void Connected(const Connecting::Connected& connected) {
    auto tell = events_.connected;  // a copy: the callback may destroy this object
    tell(net::MakeChannel(connected, address_, credentials_,
                          {.longest_message = static_cast<int>(kLongestMessage), .tuning = kTuning}));
  }

  void Failed(const std::string& obstacle) {
    const TimePoint now = MonotonicClock::now();
    if (now >= deadline_) {
      auto tell = events_.gave_up;
      return tell(obstacle);
    }
    if (obstacle != obstacle_) {
      obstacle_ = obstacle;
      if (events_.waiting) events_.waiting(obstacle);
    }
    const Duration jitter = pause_ * static_cast<int>(random_() % 100) / 200;
    pause_timer_.expires_at(deadline_ - now < pause_ + jitter ? deadline_ : now + pause_ + jitter);
    pause_ = std::min(pause_ * 2, kLongestPause);
    pause_timer_.async_wait([this, alive = std::weak_ptr<bool>(alive_)](boost::system::error_code error) {
      if (!error && !alive.expired()) Try();
    });
  }

  asio::io_context& loop_;
  net::Resolver& resolver_;
  const std::string address_;
  const net::Credentials credentials_;
  const TimePoint deadline_;
  const Events events_;
  std::unique_ptr<Connecting> connecting_;
  std::string obstacle_;
  Duration pause_ = kFirstPause;
  std::minstd_rand random_{std::random_device{}()};
  asio::steady_timer pause_timer_;
  const std::shared_ptr<bool> alive_ = std::make_shared<bool>(true);
};

}  // namespace

bool IsRefusal(const grpc::Status& status) {
  switch (status.error_code()) {
    case grpc::StatusCode::UNAUTHENTICATED:
    case grpc::StatusCode::INVALID_ARGUMENT:
    case grpc::StatusCode::RESOURCE_EXHAUSTED:
    case grpc::StatusCode::UNIMPLEMENTED:
      return true;
    default:
      return false;
  }
}

std::unique_ptr<Dialling> Dialling::Start(asio::io_context& loop, net::Resolver& resolver, const std::string& address,
                                          const net::Credentials& credentials, TimePoint deadline, Events events) {
  return std::make_unique<Dial>(loop, resolver, address, credentials, deadline, std::move(events));
}

}  // namespace muster::rsh

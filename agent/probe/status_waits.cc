// SPDX-License-Identifier: Apache-2.0
#include "agent/probe/status_waits.h"

#include <boost/asio/post.hpp>
#include <boost/asio/steady_timer.hpp>
#include <utility>

#include "agent/probe/status_inquiry.h"

namespace muster::agent {
namespace {

constexpr size_t kMostWaits = 4;

}  // namespace

struct StatusWaits::Wait {
  Wait(boost::asio::io_context& loop, const std::string& run_id) : inquiry(loop, run_id), over(loop) {}
  StatusInquiry inquiry;
  boost::asio::steady_timer over;
  Done done;  // null: it was called
};

StatusWaits::StatusWaits(boost::asio::io_context& loop, std::string run_id) : loop_(loop), run_id_(std::move(run_id)) {}
StatusWaits::~StatusWaits() = default;

void StatusWaits::Begin(IsNews is_news, Duration limit, const std::string& address,
                        rendezvous::Coordinator* coordinator, const net::Credentials& credentials, Duration patience,
                        Done done) {
  if (waits_.size() >= kMostWaits) End(std::shared_ptr(waits_.front()), std::nullopt);
  const auto wait = waits_.emplace_back(std::make_shared<Wait>(loop_, run_id_));
  wait->done = std::move(done);
  const auto end = [this, weak = std::weak_ptr(wait)](std::optional<StatusOr<rendezvous::StatusReport>> answer) {
    if (const auto self = weak.lock()) End(self, std::move(answer));
  };
  wait->over.expires_after(limit);
  wait->over.async_wait([end](boost::system::error_code cancelled) {
    if (!cancelled) end(std::nullopt);
  });
  StatusInquiry::Follower follower;
  follower.told = [end, is_news = std::move(is_news)](const rendezvous::StatusReport& report) {
    if (is_news(report)) end(report);
  };
  follower.say = [](const std::string&) {};
  follower.over = [end](const Status& status) {
    if (!status.ok()) end(status);
  };
  wait->inquiry.Follow(address, coordinator, credentials, patience, std::move(follower));
}

void StatusWaits::EndAll() {
  while (!waits_.empty()) End(std::shared_ptr(waits_.front()), std::nullopt);
}

void StatusWaits::End(const std::shared_ptr<Wait>& wait, std::optional<StatusOr<rendezvous::StatusReport>> answer) {
  const Done done = std::exchange(wait->done, nullptr);
  if (!done) return;
  waits_.remove(wait);
  boost::asio::post(loop_, [wait] {});  // this may run within the inquiry's own callback, which must outlive it
  done(std::move(answer));
}

}  // namespace muster::agent

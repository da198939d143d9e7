// SPDX-License-Identifier: Apache-2.0
#include "agent/live_source.h"

#include <boost/asio/post.hpp>
#include <utility>

namespace muster::agent {
namespace {

constexpr Duration kPause = std::chrono::seconds(1);
constexpr Duration kAnswerLimit = std::chrono::seconds(3);

}  // namespace

LiveSource::LiveSource(boost::asio::io_context& loop, std::string run_id, std::function<Attended()> attended,
                       InnerStatus& inner, Events events)
    : loop_(loop),
      run_id_(std::move(run_id)),
      attended_(std::move(attended)),
      inner_(inner),
      events_(std::move(events)),
      again_(loop) {}

void LiveSource::Begin() {
  if (goes_on_) return;
  goes_on_ = std::make_shared<bool>(true);
  AskInside();
}

void LiveSource::End() {
  goes_on_.reset();
  again_.cancel();
  // Destroyed later: this may be a callback of it.
  boost::asio::post(loop_, [old = std::shared_ptr<StatusInquiry>(std::move(inquiry_))] {});
}

void LiveSource::Again() {
  again_.expires_after(kPause);
  again_.async_wait([this](const boost::system::error_code& error) {
    if (!error && goes_on_) AskInside();
  });
}

// An agent inside knows more than this one.
void LiveSource::AskInside() {
  const bool asked = inner_.Ask("/status?ranks=1", kAnswerLimit,
                                [this, mine = std::weak_ptr(goes_on_)](const StatusOr<FetchAnswer>& answer) {
                                  if (mine.expired()) return;
                                  if (answer.ok() && answer->status == 200) {
                                    if (auto view = ParseLiveView(answer->body); view.ok()) {
                                      events_.passed_on(*std::move(view));
                                    } else {
                                      events_.trouble(std::string(Message(view.status())));
                                    }
                                  }
                                  Again();
                                });
  if (!asked) Follow();
}

void LiveSource::Follow() {
  const Attended attended = attended_();
  if (!attended.any) {
    events_.trouble("this node has no coordinator now");
    return Again();
  }
  auto mine = [mine = std::weak_ptr(goes_on_)](auto act) {
    return [mine, act](const auto& what) {
      if (!mine.expired()) act(what);
    };
  };
  inquiry_ = std::make_unique<StatusInquiry>(loop_, run_id_, true);
  inquiry_->Follow(attended.address, attended.local, *attended.credentials, kAnswerLimit,
                   {.told = mine([this](const rendezvous::StatusReport& report) { events_.told(report); }),
                    .say = mine([this](const std::string& why) { events_.trouble(why); }),
                    .over = mine([this](const Status& status) {
                      if (!status.ok()) events_.trouble(std::string(Message(status)));
                      Again();
                    })});
}

}  // namespace muster::agent

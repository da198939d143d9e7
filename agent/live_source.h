// SPDX-License-Identifier: Apache-2.0
// Where the live page of an agent gets its news: the coordinator's reports with telemetry, for as long as somebody
// looks. Loop thread only.
#pragma once

#include <boost/asio/io_context.hpp>
#include <boost/asio/steady_timer.hpp>
#include <functional>
#include <memory>
#include <string>

#include "agent/inner_status.h"
#include "agent/live/live_view.h"
#include "agent/probe/status_inquiry.h"

namespace muster::agent {

class LiveSource {
 public:
  struct Events {
    std::function<void(rendezvous::StatusReport)> told;  // once a second, and at each change
    std::function<void(LiveView)> passed_on;             // the same, from an agent inside (inner_status.h)
    std::function<void(const std::string&)> trouble;     // why no report comes now; one sentence
  };
  // `attended`: the coordinator that this node attends now.
  LiveSource(boost::asio::io_context& loop, std::string run_id, std::function<Attended()> attended, InnerStatus& inner,
             Events events);

  // Goes on until End(): after each trouble it asks again.
  void Begin();
  void End();

 private:
  void Follow();
  void AskInside();
  void Again();

  boost::asio::io_context& loop_;
  const std::string run_id_;
  const std::function<Attended()> attended_;
  InnerStatus& inner_;
  const Events events_;
  boost::asio::steady_timer again_;
  std::shared_ptr<bool> goes_on_;  // of the present Begin(); null: nobody looks
  std::unique_ptr<StatusInquiry> inquiry_;
};

}  // namespace muster::agent

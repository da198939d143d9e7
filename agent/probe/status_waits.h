// SPDX-License-Identifier: Apache-2.0
// Requests of /status that wait for news (docs/watching.md): each ends when the coordinator reports some, or when its
// time is over. Loop thread only.
//
// At most 4 wait: a further one ends the oldest. So whoever reaches the port cannot occupy its connections.
#pragma once

#include <boost/asio/io_context.hpp>
#include <functional>
#include <list>
#include <memory>
#include <optional>
#include <string>

#include "base/clock.h"
#include "base/status.h"
#include "net/credentials.h"
#include "rendezvous/coordinator.h"

namespace muster::agent {

class StatusWaits {
 public:
  // nullopt: there are no news. An error: no coordinator answers.
  using Done = std::function<void(std::optional<StatusOr<rendezvous::StatusReport>>)>;

  StatusWaits(boost::asio::io_context& loop, std::string run_id);
  ~StatusWaits();  // no callback comes after it
  StatusWaits(const StatusWaits&) = delete;
  StatusWaits& operator=(const StatusWaits&) = delete;

  using IsNews = std::function<bool(const rendezvous::StatusReport&)>;
  // `address`, `coordinator`: as for StatusInquiry::Follow. `patience`: how long the coordinator's first answer may
  // take. `done` is called once, after `limit` at the latest.
  void Begin(IsNews is_news, Duration limit, const std::string& address, rendezvous::Coordinator* coordinator,
             const net::Credentials& credentials, Duration patience, Done done);
  void EndAll();  // without news

 private:
  struct Wait;
  void End(const std::shared_ptr<Wait>& wait, std::optional<StatusOr<rendezvous::StatusReport>> answer);

  boost::asio::io_context& loop_;
  const std::string run_id_;
  std::list<std::shared_ptr<Wait>> waits_;  // the oldest first
};

}  // namespace muster::agent

// SPDX-License-Identifier: Apache-2.0
// Tells the coordinator of this node's workers while somebody looks at the run: once a second, for kTelemetryTime after
// each time that it was wanted. Between, it costs nothing. Loop thread only.
#pragma once

#include <boost/asio/io_context.hpp>
#include <boost/asio/steady_timer.hpp>
#include <functional>
#include <map>
#include <optional>
#include <set>

#include "agent/gpu_watch.h"
#include "base/clock.h"
#include "launcher/process_table.h"
#include "rendezvous/messages.h"

namespace muster::agent {

class TelemetryTeller {
 public:
  struct Sources {
    std::function<rendezvous::Telemetry()> facts;  // without what the workers use
    std::function<void(const rendezvous::Telemetry&)> tell;
  };
  // Both must outlive it.
  TelemetryTeller(boost::asio::io_context& loop, launcher::Reaper& reaper, Sources sources);

  void Want();

 private:
  void Tell();
  void AddUse(rendezvous::Telemetry& facts);

  boost::asio::steady_timer timer_;
  const Sources sources_;
  GpuWatch gpus_;
  std::optional<TimePoint> until_;  // set while it tells
  // Of the last time: the share of a core since then is the difference.
  std::map<pid_t, launcher::GroupUse> used_;
  TimePoint looked_at_{};
};

}  // namespace muster::agent

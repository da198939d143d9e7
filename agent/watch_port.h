// SPDX-License-Identifier: Apache-2.0
// /healthz, /readyz, /status, /metrics of an agent, `muster coordinator` and --serve-rsh, by HTTP, and the live page of
// an agent (docs/watching.md).
//
// Loop thread only. No request changes what the agent does, or waits for more than the coordinator, and for its
// news (both with a deadline).
#pragma once

#include <boost/asio/io_context.hpp>
#include <functional>
#include <memory>
#include <optional>
#include <string>

#include "agent/probe/status_inquiry.h"
#include "agent/watch/round_ledger.h"
#include "agent/watch/status_text.h"
#include "agent/workers/run_options.h"
#include "base/status.h"
#include "http/server.h"
#include "net/credentials.h"
#include "rendezvous/coordinator.h"
#include "rendezvous/store/server.h"

namespace muster::agent {

// What a request reads.
struct WatchSources {
  std::function<int()> workers_running;
  std::function<int()> standbys_ready;
  // Of the last attempt (attempt.h).
  std::function<std::optional<int>()> standby_workers;
  std::function<std::optional<double>()> first_output_seconds;
  std::function<std::optional<TrainingFacts>()> training;
  std::function<const store::StoreServer*()> store;  // nullptr: there is none now
  std::function<Attended()> attended;
};

class WatchPort {
 public:
  WatchPort(boost::asio::io_context& loop, const RunOptions& options, WatchSources sources);
  ~WatchPort();

  // Opens the port, if one is wanted, and logs it. If it cannot: an error if the user named the port, else a warning.
  Status Open();

  // The agent records here what happens, whether there is a port or not.
  RoundLedger& ledger();
  // From the construction on: where the time went.
  RunTime TimeOfRun() const;
  // The run has ended. Who looks at it hears of that before the process ends: pages at once, others when they ask
  // /status?ranks=1 the next time. Calls `done` then, after `limit` at the latest; at once if nobody looks.
  void Farewell(Duration limit, std::function<void()> done);
  // Call it before a store is destroyed: keeps its counts.
  void StoreGoes(const store::StoreServer& store);

 private:
  class Impl;
  std::unique_ptr<Impl> impl_;
};

// The same for a process without rounds, which is ready as soon as it listens; nullptr: no port is wanted, or a port
// that the user did not name cannot be opened. `muster coordinator` has /status, `/status?run_id=X` if there are
// several runs; `muster exec --serve-rsh` has no coordinator and no /status. `coordinator` must outlive it.
StatusOr<std::unique_ptr<http::Server>> WatchServer(boost::asio::io_context& loop, const HttpListen& wanted,
                                                    rendezvous::Coordinator* coordinator);

}  // namespace muster::agent

// The HTTP port of an agent, and of the processes beside it: /healthz, /readyz, /status, /metrics (docs/watching.md).
//
// Loop thread only. It only looks: nothing that is asked here changes what the agent does, and no request waits for
// anything but the coordinator's answer, with a deadline.
#pragma once

#include <boost/asio/io_context.hpp>
#include <functional>
#include <memory>
#include <optional>
#include <string>

#include "agent/torch/run_options.h"
#include "agent/watch/round_ledger.h"
#include "base/status.h"
#include "http/server.h"
#include "net/credentials.h"
#include "rendezvous/conductor.h"
#include "rendezvous/store/server.h"

namespace muster::agent {

// What is looked at when somebody asks.
struct WatchSources {
  std::function<int()> workers_running;
  std::function<const store::StoreServer*()> store;  // nullptr: none now
  struct Coordinator {
    bool known = false;   // one is attended now
    std::string address;  // "" with `known`: `conductor`
    rendezvous::Conductor* conductor = nullptr;
    const net::Credentials* credentials = nullptr;
  };
  std::function<Coordinator()> coordinator;
};

class Watch {
 public:
  Watch(boost::asio::io_context& loop, const RunOptions& options, WatchSources sources);
  ~Watch();

  // Opens the port, where one is wanted, and says which. A port that nobody asked for by name and that cannot be
  // opened is a warning.
  Status Open();

  // What happens goes in here, port or not.
  RoundLedger& ledger();
  // Before a store goes: its counts are kept.
  void StoreGoes(const store::StoreServer& store);

 private:
  class Impl;
  std::unique_ptr<Impl> impl_;
};

// The same for a process without rounds, which is ready as soon as it listens; nullptr: none is wanted. `muster
// coordinator` has /status, `/status?run_id=X` where there are several runs; `muster exec --serve-rsh` has no conductor
// and no /status. `conductor` must outlive it.
StatusOr<std::unique_ptr<http::Server>> WatchServer(boost::asio::io_context& loop, const HttpListen& wanted,
                                                    rendezvous::Conductor* conductor);

}  // namespace muster::agent

// SPDX-License-Identifier: Apache-2.0
// The agent's interface to the rendezvous: an Attendant calls back with rounds, stops and the end.
//
// Loop thread only, callbacks included. The Attendant drives attendance.h. A Link does the I/O: a local one
// (coordinator in this process, no gRPC) or one over gRPC.
#pragma once

#include <boost/asio/io_context.hpp>
#include <functional>
#include <memory>
#include <optional>
#include <string>

#include "base/status.h"
#include "net/credentials.h"
#include "rendezvous/attendance.h"
#include "rendezvous/coordinator.h"

namespace muster::rendezvous {

struct AttendantOptions {
  std::string run_id;
  std::string endpoint;  // "host:port" to dial; empty: `coordinator` below, in this process
  Node self;
  JobOptions options;
  net::Credentials credentials;
  bool in_pods = false;  // the nodes are pods of Kubernetes
};

struct AttendantEvents {
  std::function<void(const Assignment&)> start;            // start this round's workers
  std::function<void(const attendance::StopRound&)> stop;  // stop them, then call NoWorkerLeft
  std::function<void(const Verdict&)> end;                 // the job is decided; last call
  std::function<void(const std::string&)> say;             // one sentence for the user
  std::function<void()> all_silent;                        // on every node, the round's running workers write nothing
  std::function<void()> prepare = nullptr;                 // a node waits to join: make the standby workers now
  // The endpoint refuses connections and may be this machine's: tries to serve it by `coordinator`, true if it does.
  // Empty: the endpoint is not this machine's.
  std::function<bool()> host_endpoint = nullptr;
  std::function<void(const std::string& names)> imports = nullptr;  // wanted by ShareImports(""); as in Imports
  std::function<void()> telemetry_wanted = nullptr;  // somebody looks at the run: Tell() each second for kTelemetryTime
};

class Attendant {
 public:
  // `coordinator` may be null if this agent never coordinates (no control port). It must outlive the Attendant.
  Attendant(boost::asio::io_context& loop, AttendantOptions options, Coordinator* coordinator, AttendantEvents events);
  ~Attendant();
  Attendant(const Attendant&) = delete;
  Attendant& operator=(const Attendant&) = delete;

  // Address of the coordinator that this node attends now. "": in this process. Nullopt: it attends none.
  std::optional<std::string> attended() const;

  void Begin();
  // The workers have written nothing for the limit of silence, or write again. If they are silent on every node of the
  // round, events.all_silent follows.
  void WorkersSilent(bool silent);
  // Whether this node makes standby workers, and they are not ready yet.
  void Prepares(bool preparing);
  // The run has succeeded on other nodes. events.end follows once no worker runs here.
  void RunIsOver();
  // What a worker here has shown: for nodes that wait. Empty: this node waits, and wants events.imports.
  void ShareImports(const std::string& names);
  // For the coordinator that is attended now, if there is one.
  void Tell(const Telemetry& telemetry);
  void WorkersEnded(Report report);
  void NoWorkerLeft(int store_port, std::optional<int64_t> progress = std::nullopt,
                    std::vector<WorkerFailure> late = {});  // as in Ready; WorkerFailure::late
  void Leave(const std::string& reason, LeaveCause cause);  // as in messages.h
  // Ends the conversation when the coordinator has received everything said, at the latest after `limit`, and then
  // calls `done`. No event comes, and nothing is decided, after this call.
  void Close(Duration limit, std::function<void()> done);

 private:
  class Impl;
  std::shared_ptr<Impl> impl_;
};

}  // namespace muster::rendezvous

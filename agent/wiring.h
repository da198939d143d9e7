// SPDX-License-Identifier: Apache-2.0
// How the workers of one attempt are made: the part of an agent that knows the framework (wire_torch.cc, wire_plain.cc;
// flags/wire_jax.cc, wire_mpi.cc and wire_xgboost.cc give the variables of a plain command).
#pragma once

#include <boost/asio/io_context.hpp>
#include <functional>
#include <string>
#include <vector>

#include "agent/workers/log_layout.h"
#include "agent/workers/run_options.h"
#include "base/clock.h"
#include "base/status.h"
#include "launcher/worker_group.h"
#include "rendezvous/round.h"

namespace muster::agent {

// torchrun's time between SIGTERM and SIGKILL when a round is restarted; --shutdown-timeout is for the end of the job.
inline constexpr Duration kRestartGrace = std::chrono::seconds(30);

struct Wiring {
  // Called once, on the loop, before the first round. `failed`: the round failed for a reason that no worker reports.
  std::function<void(boost::asio::io_context&, std::function<void(int exit_code, const std::string& reason)> failed)>
      begin;
  // The job is decided: tells those who wait for its end (MPI's worker pods), then calls `done` once, in bounded time.
  std::function<void(int exit_code, const std::string& reason, std::function<void()> done)> end;
  // This node's workers in a round, by local rank. An error becomes the failure of the attempt: NotFound,
  // PermissionDenied and FailedPrecondition end with 127, 126 and 78.
  std::function<StatusOr<std::vector<launcher::WorkerSpec>>(const rendezvous::Assignment&, const AttemptPaths&)>
      workers;
  // What is printed at the end of a job that failed, before the one-line reason; may be empty.
  std::function<std::string(const rendezvous::Verdict&, const std::string& this_node)> summary;
  // Between SIGTERM and SIGKILL when a round ends by a failure or a loss. After a preemption it is always
  // kRestartGrace: the last checkpoint of the preempted node may need all of its peers.
  Duration grace = kRestartGrace;
  // Whether a c10d store is served for the rounds in which this node has rank 0.
  bool store = true;
  // The worker is the user's command: if this node must leave and the command ends by itself, the command's code
  // counts.
  bool own_code = false;
};

// torchrun's workers (wire_torch.cc). `options` must outlive it.
Wiring TorchWiring(const RunOptions& options);
// One process (XGBoost: options.workers.nproc) as the user wrote it (wire_plain.cc), with the agent's environment,
// working directory and streams. On a terminal it gets the foreground. stderr goes through a pipe, for reports of its
// last lines, unless it is a terminal or the same file as stdout: a pipe would lose the order of the two streams.
//
// Besides the framework's variables, the environment has changes for a torchrun inside the command. PATH begins with a
// folder that holds this binary under the name torchrun. MUSTER_HTTP_PORT is off if this agent has a port.
// MUSTER_TERMINATION_LOG is this agent's path, if it is not the default. Unless they are set, MUSTER_RESTART_POLICY is
// exit-code, and TORCH_ELASTIC_SHUTDOWN_TIMEOUT is less than this agent's own grace (inner_environment.h).
Wiring PlainWiring(const RunOptions& options);

}  // namespace muster::agent

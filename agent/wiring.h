// How the workers of one attempt are made: the part of an agent that knows the framework. One file per framework:
// wire_torch.cc, wire_plain.cc; wire_jax.cc and wire_xgboost.cc say what a plain command is told (pod_facts.h).
#pragma once

#include <boost/asio/io_context.hpp>
#include <functional>
#include <string>
#include <vector>

#include "agent/torch/log_layout.h"
#include "agent/torch/run_options.h"
#include "base/clock.h"
#include "base/status.h"
#include "launcher/worker_group.h"
#include "rendezvous/round.h"

namespace muster::agent {

// torchrun's time between TERM and KILL when a round is restarted; --shutdown-timeout is for the end of the job.
inline constexpr Duration kRestartGrace = std::chrono::seconds(30);

struct Wiring {
  // Called once, on the loop, before the first round. `failed`: the round has failed for a reason that the workers do
  // not tell, with this code.
  std::function<void(boost::asio::io_context&, std::function<void(int exit_code, const std::string& reason)> failed)>
      begin;
  // The job is decided: tells those who wait for its end. `done` is called once, after a bounded time.
  std::function<void(int exit_code, const std::string& reason, std::function<void()> done)> end;
  // This node's workers in a round, by local rank. An error becomes the failure of the attempt: NotFound,
  // PermissionDenied and FailedPrecondition end with 127, 126 and 78.
  std::function<StatusOr<std::vector<launcher::WorkerSpec>>(const rendezvous::Assignment&, const AttemptPaths&)>
      workers;
  // What is printed at the end of a job that failed, before the one-line reason; may be empty.
  std::function<std::string(const rendezvous::Verdict&, const std::string& this_node)> summary;
  // Between TERM and KILL when a round ends by a failure or a loss. A preempted peer's last checkpoint may need all of
  // its peers: there it is kRestartGrace in any case.
  Duration grace = kRestartGrace;
  // A c10d store is served for the rounds in which this node has rank 0.
  bool store = true;
  // The worker is the user's own command: where this node was told to go and the command ended by itself, its code
  // counts, not the signal's.
  bool own_code = false;
};

// torchrun's workers (wire_torch.cc). `options` must outlive it.
Wiring TorchWiring(const RunOptions& options);
// One process, as the user wrote it (wire_plain.cc; XGBoost: options.nproc of them): environment, working directory and
// streams are the agent's own. On a terminal it gets the foreground. stderr goes through a pipe, so that its last lines
// can be told, unless it is a terminal or the same file as stdout, whose order would be lost.
//
// Beside the framework's variables the environment differs in three points, for a torchrun inside the command: a folder
// that holds this binary under that name comes first on PATH; MUSTER_RESTART_POLICY is exit-code and
// TORCH_ELASTIC_SHUTDOWN_TIMEOUT below our own grace, unless they are set (inner_environment.h).
Wiring PlainWiring(const RunOptions& options);

}  // namespace muster::agent

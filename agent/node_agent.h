// SPDX-License-Identifier: Apache-2.0
// One node of a job: attends the rendezvous, runs the rounds it is given, and ends with the job's verdict.
//
// Composes an Attendant (on the endpoint's host the coordinator, too), a store for the rounds with rank 0 here, and a
// WorkerGroup per round. Everything is on one loop, which Run() runs; nothing is thread-safe.
//
// What the agent does at each event (docs/rendezvous.md has all rules):
//   start(round)        -> make a folder for the attempt, then start the workers
//   a worker fails      -> report it at once, stop this node's other workers, say "no worker left" with a fresh store
//   stop(round)         -> stop the workers, say "no worker left"
//   all workers ended 0 -> report success, keep attending until the job is decided
//   end(verdict)        -> stop what runs, print the summary, end with the verdict's code
//   SIGTERM, SIGINT ... -> leave first, forward the signal, end with 128 + signal; a second signal kills the workers
#pragma once

#include <memory>

#include "agent/workers/run_options.h"
#include "base/status.h"

namespace muster::agent {

class NodeAgent {
 public:
  explicit NodeAgent(RunOptions options);
  ~NodeAgent();
  NodeAgent(const NodeAgent&) = delete;
  NodeAgent& operator=(const NodeAgent&) = delete;

  // Runs until the job is decided or this node was told to leave; returns the exit code (0..255). Blocks.
  int Run();

 private:
  class Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace muster::agent

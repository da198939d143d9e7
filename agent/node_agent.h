// One node of a job: attends the rendezvous, runs the rounds it is given, and ends with the job's verdict.
//
// Composes the rooms: an Attendant (and, on the host of the endpoint, the coordinator), a store for the rounds in which
// this node has rank 0, and a WorkerGroup per round. All of it on one loop, which Run() runs; nothing here is
// thread-safe.
//
// What happens when (docs/rendezvous.md tells the whole story):
//   start(round)        -> a folder for the attempt, then the workers
//   a worker fails      -> report it at once, stop the others here, say "no worker left" with a fresh store
//   stop(round)         -> stop the workers, say "no worker left"
//   all workers ended 0 -> report success, keep attending until the job is decided
//   end(verdict)        -> stop what runs, print the summary, end with the verdict's code
//   SIGTERM, SIGINT ... -> leave first, forward the signal, end with 128 + signal; a second one kills at once
#pragma once

#include <memory>

#include "agent/torch/run_options.h"
#include "base/status.h"

namespace muster::agent {

class NodeAgent {
 public:
  explicit NodeAgent(RunOptions options);
  ~NodeAgent();
  NodeAgent(const NodeAgent&) = delete;
  NodeAgent& operator=(const NodeAgent&) = delete;

  // Runs until the job is decided or this node was told to go; gives the exit code (0..255). Blocks.
  int Run();

 private:
  class Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace muster::agent

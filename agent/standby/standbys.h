// SPDX-License-Identifier: Apache-2.0
// The standby workers of this node: learns what the script imports (learning.h), makes one standby for each local rank,
// and starts the workers of the next round from them. plan.h decides when. Loop thread only; the Reaper must outlive
// it.
//
// A standby runs the command line of its worker, `python -u script args`, in the agent's folder, session rules, cgroup
// and limits, and stops before Python looks at the script (sitecustomize.py). It is no worker: it is in no group, its
// output goes to the debug log, and nothing that happens to it counts as a failure of the job.
#pragma once

#include <boost/asio/io_context.hpp>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "agent/workers/run_options.h"
#include "launcher/worker_group.h"

namespace muster::launcher {
class Reaper;
}

namespace muster::agent::standby {

class Standbys {
 public:
  struct Events {
    // In a round: a standby has imported what a worker has shown, in this run or the last one. All names, joined by
    // NUL.
    std::function<void(const std::string& names)> learned;
    // From Wait() or WorkersRun() on, until nothing is left to import, or it cannot be imported.
    std::function<void(bool preparing)> preparing;
  };
  // Without --standby-workers, or if WhyNone() finds a reason, all calls do nothing.
  Standbys(boost::asio::io_context& loop, launcher::Reaper& reaper, const RunOptions& options, Events events);
  ~Standbys();  // ends the standbys (SIGKILL), and blocks until they are gone, 2 s at most
  Standbys(const Standbys&) = delete;
  Standbys& operator=(const Standbys&) = delete;

  // This node waits for a round. `workers`: as they will be, but for what comes with the round.
  void Wait(const std::vector<launcher::WorkerSpec>& workers);
  // What a worker on another node has shown, joined by NUL. Worth asking for if wants_imports().
  void Hear(const std::string& names);
  bool wants_imports() const;
  // A start begins: changes the workers of a round so that each begins in its standby, if it has one that is ready and
  // fits. The first may get the finder that learns the imports. No standby is made until WorkersRun() or Wait().
  void Prepare(std::vector<launcher::WorkerSpec>* workers);
  // The start is over. Returns how many workers began in a standby.
  int WorkersRun();
  // In a round: makes the standbys now, as many at once as while the node waits for a round.
  void Hurry();
  // A round ends: no standby is made until Wait() or WorkersRun().
  void RoundEnds();
  // False: there are no standbys, and will be none.
  bool on() const;
  // How many standbys are ready.
  int ready() const;

 private:
  class Impl;
  std::shared_ptr<Impl> impl_;
};

}  // namespace muster::agent::standby

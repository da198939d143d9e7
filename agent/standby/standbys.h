// The standby workers of this node: learns what the script imports, makes one standby for each local rank, and starts
// the workers of the next round from them. plan.h decides when. Loop thread only; the Reaper must outlive it.
//
// A standby runs the command line of its worker, `python -u script args`, in the agent's folder, session rules, cgroup
// and limits, and stops before Python looks at the script (sitecustomize.py). It is no worker: it is in no group, its
// output goes to the debug log, and nothing that happens to it counts as a failure of the job.
//
// Only a Python that has been seen to run sitecustomize.py with this command line (as a worker, in Mode::kLearn) gets
// standbys. One that does not read PYTHONPATH would run the script at once.
#pragma once

#include <boost/asio/io_context.hpp>
#include <memory>
#include <vector>

#include "agent/workers/run_options.h"
#include "launcher/worker_group.h"

namespace muster::launcher {
class Reaper;
}

namespace muster::agent::standby {

class Standbys {
 public:
  // Without --standby-workers, or if it is `auto` and WhyNone() finds a reason, all calls do nothing.
  Standbys(boost::asio::io_context& loop, launcher::Reaper& reaper, const RunOptions& options);
  ~Standbys();  // ends the standbys (SIGKILL)
  Standbys(const Standbys&) = delete;
  Standbys& operator=(const Standbys&) = delete;

  // A start begins: changes the workers of a round so that each begins in its standby, if it has one that is ready and
  // fits. One of the others may get the finder that learns the imports. No standby is made until WorkersRun().
  void Prepare(std::vector<launcher::WorkerSpec>* workers);
  // The start is over. Returns how many workers began in a standby.
  int WorkersRun();
  // A round ends: no standby is made until WorkersRun().
  void RoundEnds();
  // How many standbys are ready.
  int ready() const;

 private:
  class Impl;
  std::shared_ptr<Impl> impl_;
};

}  // namespace muster::agent::standby

// One attempt on this node: a folder, the workers of one round, and the record of how they ended.
//
// Loop thread only. Owns the WorkerGroup; the Reaper and the Console must outlive it.
#pragma once

#include <boost/asio/io_context.hpp>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "agent/hang_evidence.h"
#include "agent/report/attempt_record.h"
#include "agent/torch/log_layout.h"
#include "agent/torch/run_options.h"
#include "agent/wiring.h"
#include "base/status.h"
#include "base/worker_failure.h"
#include "launcher/worker_group.h"
#include "rendezvous/round.h"

namespace muster::agent {

struct AttemptEvents {
  // One or more workers failed by themselves (causes before consequences). Called once; the others still run.
  std::function<void(std::vector<WorkerFailure>)> failed;
  // Every worker ended with 0. Called once.
  std::function<void()> succeeded;
  // No process of this attempt is left. Called once, after failed or succeeded.
  std::function<void()> gone;
};

class Attempt {
 public:
  // `log_root`: "<log-dir>/<run id>", or empty when no folder is wanted (--log-dir /dev/null).
  Attempt(boost::asio::io_context& loop, launcher::Reaper& reaper, launcher::Console& console,
          const RunOptions& options, const Wiring& wiring, rendezvous::Assignment assignment,
          const std::string& log_root, AttemptEvents events);
  ~Attempt();
  Attempt(const Attempt&) = delete;
  Attempt& operator=(const Attempt&) = delete;

  // Makes the folder and starts the workers. On an error none runs, and Failure() turns it into a report.
  Status Start();

  // Stops what runs; `reason` goes into the record. gone follows, if it has not been said yet.
  void Stop(int signal, Duration grace, const std::string& reason);
  // Sets the reason this attempt ended with and writes the record for the last time.
  void Close(const std::string& reason);

  // Puts the job's end into the record, after Close().
  void JobEnded(int exit_code, const std::string& reason);

  // The workers are about to be stopped: an end of one is no failure any more.
  void Hold(const std::string& reason);

  // Passes a signal on, no more.
  void Signal(int signal);
  bool running() const;
  int workers_running() const;
  // Of the first worker that has ended, unless our SIGKILL was its end.
  std::optional<int> OwnExitCode() const;
  const rendezvous::Assignment& assignment() const;
  Duration lived() const;
  // Highest step number the workers wrote into their heartbeat files.
  std::optional<int64_t> Progress() const;
  // What hang_guard.h looks at. Targets: the workers that live.
  const AttemptPaths& paths() const;
  bool Ended(int local_rank) const;
  std::optional<TimePoint> LastOutput() const;
  std::vector<EvidenceTarget> EvidenceTargets() const;
  // The failure of a worker that hangs, with code 203; the record keeps why, in the order of the calls.
  WorkerFailure HangFailure(int local_rank, const std::string& evidence);
  // Those that failed by themselves, not by our signal, and are in no report: the round had ended before.
  std::vector<WorkerFailure> LateFailures() const;
  // A failure that says why Start() failed, with the code of start_check.h and no pid.
  WorkerFailure StartFailure(const Status& error) const;
  // A failure of the first worker here that it does not tell itself.
  WorkerFailure Failure(int exit_code, std::string message) const;

 private:
  class Impl;
  std::shared_ptr<Impl> impl_;
};

}  // namespace muster::agent

// SPDX-License-Identifier: Apache-2.0
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
#include "agent/watch/status_text.h"
#include "agent/wiring.h"
#include "agent/workers/log_layout.h"
#include "agent/workers/run_options.h"
#include "base/status.h"
#include "base/worker_failure.h"
#include "launcher/worker_group.h"
#include "rendezvous/round.h"

namespace muster::agent {

struct AttemptEvents {
  // One or more workers failed by themselves (causes before consequences). Called once; the others may still run. At
  // once for a failure of a worker's own. A worker that lost a peer is reported kCauseWait later: the cause may be
  // about to end too, and only its own end says why.
  std::function<void(std::vector<WorkerFailure>)> failed;
  // Every worker ended with 0. Called once.
  std::function<void()> succeeded;
  // No process of this attempt is left. Called once, after failed or succeeded.
  std::function<void()> gone;
  // Something came through a pipe for the first time. At most once.
  std::function<void()> first_output;
  // A worker has told that it is further (or, after a restart of its own, back): rank_progress.h.
  std::function<void(double position)> progress;
  // Where the time of this agent went until now, for the record.
  std::function<TimeSpent()> spent;
};

inline constexpr Duration kCauseWait = std::chrono::seconds(2);

class Attempt {
 public:
  // `log_root`: "<log-dir>/<run id>", or empty when no folder is wanted (--log-dir /dev/null).
  Attempt(boost::asio::io_context& loop, launcher::Reaper& reaper, launcher::Console& console,
          const RunOptions& options, const Wiring& wiring, rendezvous::Assignment assignment,
          const std::string& log_root, AttemptEvents events);
  ~Attempt();
  Attempt(const Attempt&) = delete;
  Attempt& operator=(const Attempt&) = delete;

  // Makes the folder and starts the workers. On an error no worker runs; StartFailure() makes a failure of the error.
  Status Start();

  // Sends `signal` to all processes, SIGKILL after `grace`; `reason` is for the record. `gone` follows if still due.
  void Stop(int signal, Duration grace, const std::string& reason);
  // Sets the reason this attempt ended with and writes the record for the last time.
  void Close(const std::string& reason);

  // Puts into the record how many workers began in a standby, after Start(). And reads it.
  void BeganInStandby(int workers);
  int standby_workers() const;
  // Puts the job's end into the record, after Close().
  void JobEnded(int exit_code, const std::string& reason);

  // Call it before stopping the workers: their ends are no failures from now on. `reason` goes into the record.
  void Hold(const std::string& reason);

  // Reads the errors that running workers have written so far (worker_group.h), for LateFailures() and the record. Call
  // it before Stop() where the round ends for a failure: one of these may be its cause.
  void NoteErrors();

  // Forwards `signal` to the process group of every worker.
  void Signal(int signal);
  bool running() const;
  int workers_running() const;
  // The exit code of the worker that ended first; nullopt if none has ended, or if our SIGKILL ended it.
  std::optional<int> OwnExitCode() const;
  const rendezvous::Assignment& assignment() const;
  Duration lived() const;
  // Highest step number the workers wrote into their heartbeat files.
  std::optional<int64_t> HighestStep() const;
  // What the output of the worker tells that is furthest; nullopt: none has told anything.
  std::optional<TrainingFacts> Training();
  // What is known of each worker, without what it uses; and the curve of the one that is furthest.
  rendezvous::Telemetry Telemetry();
  // What hang_guard.h reads. EvidenceTargets(): the workers that still run.
  const AttemptPaths& paths() const;
  bool Ended(int local_rank) const;
  std::optional<TimePoint> LastOutput() const;
  bool SeesStdout() const;  // of a worker: then the first output tells when it trains
  // From the start of the first worker to the first output that came through a pipe; nullopt: none came before Hold().
  std::optional<double> FirstOutputSeconds() const;
  std::vector<EvidenceTarget> EvidenceTargets() const;
  // The failure of a worker that hangs (exit code 203). Adds `evidence` to the record, in the order of the calls.
  WorkerFailure HangFailure(int local_rank, const std::string& evidence);
  // Workers that failed but are in no report, because the round had already ended: by themselves, not by our signal,
  // or after they had written an error of their own before NoteErrors() (`consequence` is false; one that our signal
  // ended has the code 1, as an uncaught exception of Python). What a worker writes after our signal is not an error of
  // its own.
  std::vector<WorkerFailure> LateFailures() const;
  // A failure that says why Start() failed, with the code of start_check.h and no pid.
  WorkerFailure StartFailure(const Status& error) const;
  // Makes a failure of this node's first worker for a cause that the worker itself does not report.
  WorkerFailure Failure(int exit_code, std::string message) const;

 private:
  class Impl;
  std::shared_ptr<Impl> impl_;
};

}  // namespace muster::agent

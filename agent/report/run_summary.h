// SPDX-License-Identifier: Apache-2.0
// Combines the records of a run's attempts: who failed first, why each attempt ended, what it cost.
//
// Pure, and cheap to read: everything points into the AttemptFiles, which must outlive it. Times are from the nodes'
// own clocks, in Unix milliseconds; a difference is never below zero, even if clocks differ.
#pragma once

#include <optional>
#include <set>
#include <string>
#include <vector>

#include "agent/report/attempt_history.h"
#include "agent/report/job_record.h"
#include "base/exit_codes.h"

namespace muster::agent {

// How a worker ended in one attempt, as the timeline shows it; a worse end comes later.
enum class WorkerEnd { kSucceeded, kStopped, kNotRecorded, kRetryable, kFatal };

struct FailedWorker {
  const AttemptFile* file = nullptr;
  const launcher::ExitRecord* exit = nullptr;
  std::optional<size_t> hang_place;  // in the hangs of its node
  bool consequence = false;  // it reports only a lost peer, and another worker failed by itself or a node was lost
  int rank() const { return file->record.assignment.seat.first_rank + exit->local_rank; }
};

// One round over all its nodes.
struct AttemptSummary {
  rendezvous::RoundId id;
  int number = 0;                         // of the first node's folder
  std::vector<const AttemptFile*> nodes;  // by node rank; only nodes whose logs are here
  int node_count = 0;
  int world_size = 0;
  int standby_workers = 0;                     // workers that began in a standby
  std::optional<double> first_output_seconds;  // the shortest of the nodes'
  int restart_count = 0;
  int64_t started = 0;
  std::optional<int64_t> workers_started;  // on every node whose logs are here; nullopt: called off before
  std::optional<int64_t> stopping;         // of the first node that stopped
  int64_t ended = 0;                       // if no end is recorded: the last recorded moment
  int not_ended = 0;                       // nodes without an end: their agent was killed or still runs
  std::string start_reason;
  std::string end_reason;              // empty: no node has recorded one
  std::vector<FailedWorker> failures;  // first the one that failed first; consequences last
  std::set<const launcher::ExitRecord*> consequences;
  std::vector<JobDrill> drills;  // AddJob: that happened in this attempt, or before the next one began
  WorkerEnd end = WorkerEnd::kNotRecorded;

  // The worker that failed first, by itself; nullptr: there is none.
  const FailedWorker* RootCause() const {
    return failures.empty() || failures.front().consequence ? nullptr : &failures.front();
  }

  // From the first sign of the failure until all workers of a later attempt run. nullopt for the last attempt, and for
  // an attempt whose workers never ran: its time counts with the attempt before.
  std::optional<int64_t> lost;
};

// One run. A second start with the same run id in the same log folder is another run.
struct RunSummary {
  std::string run_id;
  std::string job_kind, job_name;  // AddJob: of a job of `muster local`; empty: of another run
  std::string version;
  std::vector<AttemptSummary> attempts;  // by (term, round); at least one
  int restarts = 0;                      // charged against the budget; of a job of `muster local`: the job's
  int max_restarts = 0;
  int64_t started = 0;
  int64_t ended = 0;
  int64_t lost = 0;
  bool end_recorded = false;  // every node of the last attempt recorded its end
  // From the last attempt's records. Older records do not have it; then it is derived from how the workers ended.
  std::optional<int> exit_code;  // nullopt: the records do not tell
  std::optional<ExitClass> exit_class;
  std::string reason;  // the job's, else the last attempt's
};

// The newest run first.
std::vector<RunSummary> Summarize(const std::vector<AttemptFile>& files);

// Adds to the runs of one job of `muster local` what only its run.json says: its name, its drills, and to the newest
// run the restarts of the job. The agents know only of those that they charged, and not of a pod that was recreated.
void AddJob(const JobRecord& job, std::vector<RunSummary>* runs);

// `exit`: nullptr for a worker without an exit record.
WorkerEnd EndOf(const launcher::ExitRecord* exit, bool consequence = false);
// "succeeded" | "stopped" | "no end recorded" | "retryable failure" | "fatal failure".
std::string_view WorkerEndName(WorkerEnd end);

// "exit code 3", "killed by SIGKILL (out of memory)".
std::string DescribeWorkerExit(const launcher::ExitRecord& exit);

// JSON text, one object: {"runs": [...], "problems": [...]}. docs/report.md has the fields.
std::string ToJson(const std::vector<RunSummary>& runs, const std::vector<HistoryProblem>& problems);

}  // namespace muster::agent

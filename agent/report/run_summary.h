// What the records of a run's attempts say together: who failed first, why each attempt ended, what it cost.
//
// Pure, and cheap to read: everything points into the AttemptFiles, which must outlive it. Times are the nodes' own
// clocks, in Unix milliseconds; where clocks differ a difference is never below zero.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "agent/report/attempt_history.h"
#include "base/exit_codes.h"

namespace muster::agent {

// How a worker's life in one attempt ended, as the timeline paints it.
enum class WorkerEnd { kSucceeded, kStopped, kNotRecorded, kRetryable, kFatal };  // the worse the later

struct FailedWorker {
  const AttemptFile* file = nullptr;
  const launcher::ExitRecord* exit = nullptr;
  bool consequence = false;  // it only says that it lost a peer, while another one failed by itself or a node was lost
  int rank() const { return file->record.assignment.seat.first_rank + exit->local_rank; }
};

// One round over all its nodes.
struct AttemptSummary {
  rendezvous::RoundId id;
  int number = 0;                         // of the first node's folder
  std::vector<const AttemptFile*> nodes;  // by node rank; those whose logs are here
  int node_count = 0;
  int world_size = 0;
  int restart_count = 0;
  int64_t started = 0;
  std::optional<int64_t> workers_started;  // on every node whose log is here; nullopt: called off before that
  std::optional<int64_t> stopping;         // the first node's
  int64_t ended = 0;                       // where no end is recorded: the last moment that is
  int not_ended = 0;                       // nodes without an end: killed agents, or it still runs
  std::string start_reason;
  std::string end_reason;              // empty: no node has recorded one
  std::vector<FailedWorker> failures;  // the one that failed first in front, consequences behind
  WorkerEnd end = WorkerEnd::kNotRecorded;

  // The worker that failed first, by itself; nullptr where none did.
  const FailedWorker* RootCause() const {
    return failures.empty() || failures.front().consequence ? nullptr : &failures.front();
  }

  // From the first sign of the failure to all workers of a later attempt; nullopt for the last one, and for one whose
  // time counts with the one before it because its workers never ran.
  std::optional<int64_t> lost;
};

// One life of a run id: a second start in the same log folder is another one.
struct RunSummary {
  std::string run_id;
  std::string version;
  std::vector<AttemptSummary> attempts;  // by (term, round); at least one
  int restarts = 0;                      // charged against the budget
  int max_restarts = 0;
  int64_t started = 0;
  int64_t ended = 0;
  int64_t lost = 0;
  bool end_recorded = false;  // every node of the last attempt says how it ended
  // As the last attempt's records tell it; older ones do not, then what must follow from how its workers ended.
  std::optional<int> exit_code;  // nullopt where the records do not tell
  std::optional<ExitClass> exit_class;
  std::string reason;  // the job's, else the last attempt's
};

// The newest run first.
std::vector<RunSummary> Summarize(const std::vector<AttemptFile>& files);

// `exit`: nullptr for a worker without one.
WorkerEnd EndOf(const launcher::ExitRecord* exit, bool consequence = false);
// "succeeded" | "stopped" | "no end recorded" | "retryable failure" | "fatal failure".
std::string_view WorkerEndName(WorkerEnd end);

// "exit code 3", "killed by SIGKILL (out of memory)".
std::string DescribeWorkerExit(const launcher::ExitRecord& exit);

// JSON text, one object: {"runs": [...], "problems": [...]}. docs/report.md has the fields.
std::string ToJson(const std::vector<RunSummary>& runs, const std::vector<HistoryProblem>& problems);

}  // namespace muster::agent

// SPDX-License-Identifier: Apache-2.0
// attempt.json: which workers ran in one attempt, when, and why it ended. One per attempt and node, beside its logs.
//
// Written at the start, when the workers run, at their first output, at the end, and when the job is decided. Each time
// it is replaced as a whole (temporary name, then rename), so that no reader sees a half file, even if the agent is
// killed. Read by `muster report`, the demo and people; docs/attempt-json.md has the fields.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "agent/progress/time_ledger.h"
#include "base/exit_codes.h"
#include "base/status.h"
#include "launcher/exit_record.h"
#include "rendezvous/round.h"
#include "rendezvous/telemetry.h"

namespace muster::agent {

// How the whole job ended, as this node heard it; in the record of this node's last attempt.
struct JobResult {
  int exit_code = 0;
  ExitClass exit_class = ExitClass::kSuccess;  // by the job's own --retry-codes and --fatal-codes
  std::string reason;                          // one sentence
  bool operator==(const JobResult&) const = default;
};

// How far a worker's training came in one attempt, by its output (agent/progress/rank_progress.h).
struct RankTraining {
  int local_rank = 0;
  double position = 0;
  bool in_epochs = false;  // what `position` and `end` count; else steps
  std::optional<double> end, loss;
  std::optional<Duration> step_time;
  bool operator==(const RankTraining&) const = default;
};

struct AttemptRecord {
  std::string run_id;
  int attempt = 0;  // number of the folder
  std::string version;
  rendezvous::Assignment assignment;
  std::string start_reason;     // why this round was made
  int64_t started_unix_ms = 0;  // the round reached this node
  std::optional<int64_t> workers_started_unix_ms;
  std::optional<int64_t> stopping_unix_ms;     // a worker failed, or the stop arrived
  std::optional<int64_t> ended_unix_ms;        // no worker was left
  std::string end_reason;                      // empty while it runs
  std::vector<int64_t> pids;                   // by local rank
  int standby_workers = 0;                     // of these, how many began in a standby (standby/standbys.h)
  std::optional<double> first_output_seconds;  // of any worker, since the start of the first; nullopt: none was seen
  std::vector<launcher::ExitRecord> exits;
  std::optional<JobResult> job;  // nullopt: not decided, or this node had ended before
  struct Hang {
    int local_rank = 0;
    std::string why;    // why the worker was taken for hanging, before it was stopped
    int64_t place = 0;  // the index in `hangs` when it was written; a file that is read may lack others
  };
  std::vector<Hang> hangs;                    // the likeliest cause first
  std::vector<RankTraining> training;         // of the workers that told a position, by local rank
  std::vector<rendezvous::CurvePoint> curve;  // of the furthest of them; at most kMaxCurvePoints
  // Where the time of this agent went, from its begin until the record was written; nullopt: not known.
  std::optional<TimeSpent> spent;

  // The place of a worker in `hangs`; hangs.size() if it is not there.
  size_t HangPlace(int local_rank) const;
};

// JSON text, one object, indented by two.
std::string ToJson(const AttemptRecord& record);

// Replaces the file `path`.
Status WriteAttemptRecord(const AttemptRecord& record, const std::string& path);

}  // namespace muster::agent

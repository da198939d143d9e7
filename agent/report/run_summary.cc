// SPDX-License-Identifier: Apache-2.0
#include "agent/report/run_summary.h"

#include <algorithm>
#include <map>
#include <set>
#include <tuple>

#include "base/exit_codes.h"
#include "base/json_fields.h"
#include "base/peer_loss.h"
#include "base/text.h"

namespace muster::agent {
namespace {

using Files = std::vector<const AttemptFile*>;
using Json = nlohmann::ordered_json;

const rendezvous::Assignment& AssignmentOf(const AttemptFile* file) { return file->record.assignment; }

bool StartedBefore(const AttemptFile* a, const AttemptFile* b) {
  return a->record.started_unix_ms < b->record.started_unix_ms;
}

// Groups records of one run id, in the order of their start, by round. A node that appears a second time with the same
// round and store belongs to a later start of the same run.
std::vector<Files> GroupByRound(const Files& files) {
  using Key = std::tuple<rendezvous::RoundId, std::string, int, int>;
  std::vector<Files> rounds;
  std::map<Key, size_t> open;
  std::set<std::pair<size_t, std::string>> members;
  for (const AttemptFile* file : files) {
    const rendezvous::Assignment& assignment = AssignmentOf(file);
    Key key{assignment.id, assignment.master_host, assignment.master_port, assignment.world_size};
    auto [at, is_new] = open.try_emplace(key, rounds.size());
    if (!is_new && members.contains({at->second, assignment.seat.node.name})) {
      at->second = rounds.size();
      is_new = true;
    }
    if (is_new) rounds.emplace_back();
    members.emplace(at->second, assignment.seat.node.name);
    rounds[at->second].push_back(file);
  }
  return rounds;
}

// The time of the worker's end, else the next best moment in its record.
int64_t FailedAt(const FailedWorker& failed) {
  const AttemptRecord& record = failed.file->record;
  // A hang is found before the worker is stopped.
  if (failed.hang_place && record.stopping_unix_ms) return *record.stopping_unix_ms;
  if (failed.exit->ended_unix_millis > 0) return failed.exit->ended_unix_millis;
  return record.stopping_unix_ms.value_or(record.ended_unix_ms.value_or(0));
}

// `node_lost`: some node's record has no end, so workers may have lost their peers on that node.
std::vector<FailedWorker> Failures(const Files& nodes, bool node_lost) {
  std::vector<FailedWorker> failures;
  bool one_by_itself = node_lost;
  for (const AttemptFile* file : nodes) {
    std::map<int, size_t> hangs;  // by local rank
    for (const AttemptRecord::Hang& hang : file->record.hangs) hangs.try_emplace(hang.local_rank, hangs.size());
    for (const launcher::ExitRecord& exit : file->record.exits) {
      if (exit.exit_code == 0 || exit.after_stop) continue;
      bool consequence = LooksLikePeerLoss(
          {.message = exit.error_message, .stderr_tail = exit.stderr_tail, .stderr_reason = exit.stderr_reason});
      one_by_itself |= !consequence;
      const auto hang = hangs.find(exit.local_rank);
      failures.push_back({.file = file,
                          .exit = &exit,
                          .hang_place = hang == hangs.end() ? std::nullopt : std::optional(hang->second),
                          .consequence = consequence});
    }
  }
  for (FailedWorker& failed : failures) failed.consequence &= one_by_itself;
  std::stable_sort(failures.begin(), failures.end(), [](const FailedWorker& a, const FailedWorker& b) {
    auto key = [](const FailedWorker& f) {
      return std::tuple(f.consequence, FailedAt(f), f.hang_place.value_or(SIZE_MAX));
    };
    return key(a) < key(b);
  });
  return failures;
}

// Prefers the coordinator's sentence, which names the node, to a node's own sentence about its worker, which does not.
std::string EndReason(const Files& nodes, const std::vector<FailedWorker>& failures) {
  std::map<std::string, int> said;
  for (const AttemptFile* file : nodes) {
    if (!file->record.end_reason.empty()) ++said[file->record.end_reason];
  }
  if (said.empty()) return "";
  auto node_named = std::find_if(said.begin(), said.end(), [](const auto& s) { return s.first.starts_with("node "); });
  if (node_named != said.end() && !failures.empty()) return node_named->first;
  return std::max_element(said.begin(), said.end(), [](auto& a, auto& b) { return a.second < b.second; })->first;
}

AttemptSummary SummarizeRound(Files nodes) {
  std::stable_sort(nodes.begin(), nodes.end(), [](const AttemptFile* a, const AttemptFile* b) {
    return AssignmentOf(a).node_rank < AssignmentOf(b).node_rank;
  });
  const AttemptRecord& first = nodes.front()->record;
  AttemptSummary attempt;
  attempt.id = first.assignment.id;
  attempt.number = first.attempt;
  attempt.node_count = std::max(first.assignment.node_count, static_cast<int>(nodes.size()));
  attempt.restart_count = first.assignment.restart_count;
  attempt.start_reason = first.start_reason;
  attempt.started = first.started_unix_ms;
  attempt.workers_started = 0;
  int workers = 0;
  bool stopped = false;
  for (const AttemptFile* file : nodes) {
    const AttemptRecord& record = file->record;
    workers += record.assignment.seat.node.slots;
    attempt.standby_workers += record.standby_workers;
    if (auto first = record.first_output_seconds) {
      attempt.first_output_seconds = std::min(attempt.first_output_seconds.value_or(*first), *first);
    }
    attempt.started = std::min(attempt.started, record.started_unix_ms);
    if (attempt.workers_started && record.workers_started_unix_ms) {
      attempt.workers_started = std::max(*attempt.workers_started, *record.workers_started_unix_ms);
    } else {
      attempt.workers_started.reset();
    }
    if (auto stop = record.stopping_unix_ms) attempt.stopping = std::min(attempt.stopping.value_or(*stop), *stop);
    if (!record.ended_unix_ms) ++attempt.not_ended;
    for (auto moment : {std::optional(record.started_unix_ms), record.workers_started_unix_ms, record.stopping_unix_ms,
                        record.ended_unix_ms}) {
      attempt.ended = std::max(attempt.ended, moment.value_or(0));
    }
    for (const launcher::ExitRecord& exit : record.exits) {
      attempt.ended = std::max(attempt.ended, exit.ended_unix_millis);
      stopped |= exit.after_stop;
    }
  }
  attempt.world_size = std::max(first.assignment.world_size, workers);
  attempt.failures = Failures(nodes, attempt.not_ended > 0);
  for (const FailedWorker& failed : attempt.failures) {
    if (failed.consequence) attempt.consequences.insert(failed.exit);
  }
  attempt.end_reason = EndReason(nodes, attempt.failures);
  if (const FailedWorker* root = attempt.RootCause()) {
    attempt.end = EndOf(root->exit);
  } else if (attempt.not_ended == static_cast<int>(nodes.size())) {
    attempt.end = WorkerEnd::kNotRecorded;
  } else {
    stopped |= attempt.not_ended > 0 || !attempt.workers_started || !attempt.failures.empty();
    attempt.end = stopped ? WorkerEnd::kStopped : WorkerEnd::kSucceeded;
  }
  attempt.nodes = std::move(nodes);
  return attempt;
}

// 128 + the signal in "preempted: SIGTERM" or "stopped by SIGINT": the agents were asked to end.
std::optional<int> CodeOfStop(std::string_view reason) {
  size_t at = reason.find("SIG");
  if (at == std::string_view::npos || reason.starts_with("node ")) return std::nullopt;
  size_t end = std::min(reason.find_first_not_of("ABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789", at), reason.size());
  auto signal = ParseSignal(reason.substr(at, end - at));
  return signal.ok() ? std::optional(128 + *signal) : std::nullopt;
}

// The exit code of the job: that of its root cause (docs/exit-codes.md).
std::optional<int> ExitCode(const AttemptSummary& last) {
  if (const FailedWorker* root = last.RootCause()) return root->exit->exit_code;
  if (last.not_ended > 0) return std::nullopt;
  if (last.end == WorkerEnd::kStopped || !last.workers_started) return CodeOfStop(last.end_reason);
  bool all_here = last.node_count == static_cast<int>(last.nodes.size());
  if (all_here || last.end_reason.find("succeeded") != std::string::npos) return 0;
  return std::nullopt;
}

// The coordinator's decision, if a node of the last attempt has heard it. A node that gave up the rendezvous by itself
// (200, 201) speaks for the job only if no other node does.
const JobResult* Recorded(const AttemptSummary& last) {
  const JobResult* found = nullptr;
  for (const AttemptFile* file : last.nodes) {
    const std::optional<JobResult>& job = file->record.job;
    if (!job) continue;
    if (WhereCauseIs(job->exit_code) != CauseIn::kRendezvous) return &*job;
    if (found == nullptr) found = &*job;
  }
  return found;
}

// The time lost by a failure runs until a later attempt has all its workers, over attempts whose workers never ran.
void CountLostTime(RunSummary& run) {
  AttemptSummary* failed = nullptr;
  for (AttemptSummary& attempt : run.attempts) {
    if (failed != nullptr && attempt.workers_started) {
      failed->lost = std::max<int64_t>(0, *attempt.workers_started - failed->stopping.value_or(failed->ended));
      run.lost += *failed->lost;
      failed = nullptr;
    }
    if (failed == nullptr) failed = &attempt;
  }
}

RunSummary SummarizeRun(std::vector<AttemptSummary> attempts) {
  std::stable_sort(attempts.begin(), attempts.end(),
                   [](const AttemptSummary& a, const AttemptSummary& b) { return a.id < b.id; });
  RunSummary run;
  run.attempts = std::move(attempts);
  run.started = run.attempts.front().started;
  for (const AttemptSummary& attempt : run.attempts) {
    run.started = std::min(run.started, attempt.started);
    run.ended = std::max(run.ended, attempt.ended);
    run.restarts = std::max(run.restarts, attempt.restart_count);
  }
  CountLostTime(run);
  const AttemptSummary& last = run.attempts.back();
  const AttemptRecord& record = last.nodes.front()->record;
  run.run_id = record.run_id;
  run.version = record.version;
  run.max_restarts = record.assignment.max_restarts;
  run.end_recorded = last.not_ended == 0;
  if (const JobResult* job = Recorded(last)) {
    run.exit_code = job->exit_code;
    run.exit_class = job->exit_class;
    run.reason = job->reason;
  } else {
    run.exit_code = ExitCode(last);
    if (run.exit_code) run.exit_class = Classify(*run.exit_code);
    run.reason = last.end_reason;
  }
  return run;
}

Json FailureJson(const FailedWorker& failed) {
  const rendezvous::Node& node = AssignmentOf(failed.file).seat.node;
  Json json;
  json["rank"] = failed.rank();
  json["local_rank"] = failed.exit->local_rank;
  json["node"] = node.name;
  json["host"] = node.host;
  json["exit_code"] = failed.exit->exit_code;
  json["class"] = std::string(ExitClassName(Classify(failed.exit->exit_code)));
  json["signal"] = failed.exit->signal == 0 ? Json(nullptr) : Json(SignalName(failed.exit->signal));
  json["oom_killed"] = failed.exit->oom_killed;
  json["consequence"] = failed.consequence;
  json["ended_unix_ms"] = failed.exit->ended_unix_millis;
  json["logs"] = fmt::format("{}/{}", failed.file->folder, failed.exit->local_rank);
  return json;
}

Json AttemptJson(const AttemptSummary& attempt) {
  Json json;
  json["attempt"] = attempt.number;
  json["round"] = attempt.id.number;
  json["term"] = attempt.id.term;
  json["node_count"] = attempt.node_count;
  json["nodes"] = Json::array();
  for (const AttemptFile* file : attempt.nodes) json["nodes"].push_back(AssignmentOf(file).seat.node.name);
  json["world_size"] = attempt.world_size;
  json["standby_workers"] = attempt.standby_workers;
  json["first_output_seconds"] = OrNull(attempt.first_output_seconds);
  json["restart_count"] = attempt.restart_count;
  json["started_unix_ms"] = attempt.started;
  json["workers_started_unix_ms"] = OrNull(attempt.workers_started);
  json["stopping_unix_ms"] = OrNull(attempt.stopping);
  json["ended_unix_ms"] = attempt.not_ended == 0 ? Json(attempt.ended) : Json(nullptr);
  json["end"] = std::string(WorkerEndName(attempt.end));
  json["start_reason"] = attempt.start_reason;
  json["reason"] = attempt.end_reason.empty() ? Json(nullptr) : Json(attempt.end_reason);
  json["lost_ms"] = OrNull(attempt.lost);
  json["failures"] = Json::array();
  for (const FailedWorker& failed : attempt.failures) json["failures"].push_back(FailureJson(failed));
  json["drills"] = Json::array();
  for (const JobDrill& drill : attempt.drills) {
    json["drills"].push_back({{"unix_ms", drill.unix_ms}, {"order", drill.order}, {"done", drill.done}});
  }
  return json;
}

}  // namespace

std::vector<RunSummary> Summarize(const std::vector<AttemptFile>& files) {
  std::map<std::string, Files> by_run;
  for (const AttemptFile& file : files) by_run[file.record.run_id].push_back(&file);
  std::vector<RunSummary> runs;
  for (auto& [id, records] : by_run) {
    std::stable_sort(records.begin(), records.end(), StartedBefore);
    std::vector<AttemptSummary> life;
    std::set<rendezvous::RoundId> seen;
    for (Files& nodes : GroupByRound(records)) {
      if (!seen.insert(AssignmentOf(nodes.front()).id).second) {  // rounds only grow, so this is another start
        runs.push_back(SummarizeRun(std::exchange(life, {})));
        seen = {AssignmentOf(nodes.front()).id};
      }
      life.push_back(SummarizeRound(std::move(nodes)));
    }
    runs.push_back(SummarizeRun(std::move(life)));
  }
  std::stable_sort(runs.begin(), runs.end(),
                   [](const RunSummary& a, const RunSummary& b) { return a.started > b.started; });
  return runs;
}

void AddJob(const JobRecord& job, std::vector<RunSummary>* runs) {
  if (runs->empty()) return;
  std::vector<AttemptSummary*> attempts;
  for (RunSummary& run : *runs) {
    run.job_kind = job.kind;
    run.job_name = job.name;
    for (AttemptSummary& attempt : run.attempts) attempts.push_back(&attempt);
  }
  runs->front().restarts = job.restarts;
  runs->front().max_restarts = job.max_restarts;
  std::stable_sort(attempts.begin(), attempts.end(),
                   [](const AttemptSummary* a, const AttemptSummary* b) { return a->started < b->started; });
  for (const JobDrill& drill : job.drills) {
    const auto next =
        std::upper_bound(attempts.begin(), attempts.end(), drill.unix_ms,
                         [](int64_t time, const AttemptSummary* attempt) { return time < attempt->started; });
    (*(next == attempts.begin() ? next : next - 1))->drills.push_back(drill);
  }
}

WorkerEnd EndOf(const launcher::ExitRecord* exit, bool consequence) {
  if (exit == nullptr) return WorkerEnd::kNotRecorded;
  if (exit->after_stop || (consequence && exit->exit_code != 0)) return WorkerEnd::kStopped;
  switch (Classify(exit->exit_code)) {
    case ExitClass::kSuccess:
      return WorkerEnd::kSucceeded;
    case ExitClass::kFatal:
      return WorkerEnd::kFatal;
    case ExitClass::kRetryable:
      return WorkerEnd::kRetryable;
  }
  return WorkerEnd::kNotRecorded;
}

std::string_view WorkerEndName(WorkerEnd end) {
  switch (end) {
    case WorkerEnd::kSucceeded:
      return "succeeded";
    case WorkerEnd::kStopped:
      return "stopped";
    case WorkerEnd::kNotRecorded:
      return "no end recorded";
    case WorkerEnd::kRetryable:
      return "retryable failure";
    case WorkerEnd::kFatal:
      return "fatal failure";
  }
  return "";
}

std::string DescribeWorkerExit(const launcher::ExitRecord& exit) {
  // Up to 128 a code has the meaning that the worker gives it.
  const bool known = exit.signal != 0 || exit.exit_code > 128;
  std::string text = known ? DescribeEnd(exit.exit_code, exit.signal) : fmt::format("exit code {}", exit.exit_code);
  if (exit.oom_killed) text += fmt::format(" ({})", DescribeOom(exit.exit_code));
  if (exit.core_dumped) text += ", core dumped";
  return text;
}

std::string ToJson(const std::vector<RunSummary>& runs, const std::vector<HistoryProblem>& problems) {
  Json json;
  json["runs"] = Json::array();
  for (const RunSummary& run : runs) {
    Json one;
    one["run_id"] = run.run_id;
    one["job"] = run.job_name.empty() ? Json(nullptr) : Json(fmt::format("{} {}", run.job_kind, run.job_name));
    one["muster"] = run.version;
    one["started_unix_ms"] = run.started;
    one["ended_unix_ms"] = run.end_recorded ? Json(run.ended) : Json(nullptr);
    one["total_ms"] = run.ended - run.started;
    one["lost_ms"] = run.lost;
    one["restarts"] = run.restarts;
    one["max_restarts"] = run.max_restarts;
    one["exit_code"] = OrNull(run.exit_code);
    one["class"] = run.exit_class ? Json(std::string(ExitClassName(*run.exit_class))) : Json(nullptr);
    one["reason"] = run.reason.empty() ? Json(nullptr) : Json(run.reason);
    one["attempts"] = Json::array();
    for (const AttemptSummary& attempt : run.attempts) one["attempts"].push_back(AttemptJson(attempt));
    json["runs"].push_back(std::move(one));
  }
  json["problems"] = Json::array();
  for (const HistoryProblem& problem : problems)
    json["problems"].push_back({{"path", problem.path}, {"what", problem.what}});
  return WriteJson(json, 2);
}

}  // namespace muster::agent

#include "agent/report/attempt_record.h"

#include <algorithm>
#include <map>

#include "base/json_fields.h"
#include "base/replace_file.h"
#include "base/text.h"

namespace muster::agent {
namespace {

using Json = nlohmann::ordered_json;

// What is known about one worker. Null: it has not ended, or did not hang.
struct WorkerFacts {
  const launcher::ExitRecord* exit = nullptr;
  const AttemptRecord::Hang* hang = nullptr;
};

Json WorkerJson(const AttemptRecord& record, int local_rank, const WorkerFacts& facts) {
  Json worker;
  worker["local_rank"] = local_rank;
  worker["rank"] = record.assignment.seat.first_rank + local_rank;
  worker["pid"] = static_cast<size_t>(local_rank) < record.pids.size() ? Json(record.pids[local_rank]) : Json(nullptr);
  if (facts.hang != nullptr) {
    worker["hang"] = facts.hang->why;
    worker["hang_place"] = facts.hang - record.hangs.data();
  }
  if (facts.exit != nullptr) {
    const launcher::ExitRecord& exit = *facts.exit;
    worker["exit_code"] = exit.exit_code;
    worker["signal"] = exit.signal == 0 ? Json(nullptr) : Json(SignalName(exit.signal));
    worker["core_dumped"] = exit.core_dumped;
    worker["oom_killed"] = exit.oom_killed;
    worker["after_stop"] = exit.after_stop;
    worker["max_rss_bytes"] = exit.max_rss_bytes;
    worker["cpu_seconds"] = std::chrono::duration<double>(exit.cpu_time).count();
    worker["lived_seconds"] = std::chrono::duration<double>(exit.lived).count();
    worker["ended_unix_ms"] = exit.ended_unix_millis;
    if (!exit.error_file.empty()) worker["error_file"] = exit.error_file;
    if (!exit.error_message.empty()) worker["error_message"] = exit.error_message;
    if (!exit.stderr_tail.empty()) worker["stderr_tail"] = exit.stderr_tail;
    if (!exit.stderr_reason.empty()) worker["stderr_reason"] = exit.stderr_reason;
  }
  return worker;
}

}  // namespace

size_t AttemptRecord::HangPlace(int local_rank) const {
  auto found =
      std::find_if(hangs.begin(), hangs.end(), [&](const Hang& hang) { return hang.local_rank == local_rank; });
  return static_cast<size_t>(found - hangs.begin());
}

std::string ToJson(const AttemptRecord& record) {
  const rendezvous::Assignment& assignment = record.assignment;
  Json json;
  json["run_id"] = record.run_id;
  json["attempt"] = record.attempt;
  json["muster"] = record.version;
  json["node"] = assignment.seat.node.name;
  json["host"] = assignment.seat.node.host;
  json["round"] = assignment.id.number;
  json["term"] = assignment.id.term;
  json["node_rank"] = assignment.node_rank;
  json["node_count"] = assignment.node_count;
  json["world_size"] = assignment.world_size;
  json["first_rank"] = assignment.seat.first_rank;
  json["restart_count"] = assignment.restart_count;
  json["max_restarts"] = assignment.max_restarts;
  json["master"] = fmt::format("{}:{}", assignment.master_host, assignment.master_port);
  json["start_reason"] = record.start_reason;
  json["started_unix_ms"] = record.started_unix_ms;
  json["workers_started_unix_ms"] = OrNull(record.workers_started_unix_ms);
  json["standby_workers"] = record.standby_workers;
  json["first_output_seconds"] = OrNull(record.first_output_seconds);
  json["stopping_unix_ms"] = OrNull(record.stopping_unix_ms);
  json["ended_unix_ms"] = OrNull(record.ended_unix_ms);
  json["reason"] = record.end_reason.empty() ? Json(nullptr) : Json(record.end_reason);
  json["job"] = nullptr;
  if (record.job) {
    json["job"] = {{"exit_code", record.job->exit_code},
                   {"class", std::string(ExitClassName(record.job->exit_class))},
                   {"reason", record.job->reason}};
  }
  std::map<int, WorkerFacts> workers;  // by local rank
  for (const launcher::ExitRecord& exit : record.exits) workers[exit.local_rank].exit = &exit;
  for (const AttemptRecord::Hang& hang : record.hangs) workers[hang.local_rank].hang = &hang;
  json["workers"] = Json::array();
  for (int rank = 0; rank < assignment.seat.node.slots; ++rank) {
    json["workers"].push_back(WorkerJson(record, rank, workers[rank]));
  }
  return WriteJson(json, 2);
}

Status WriteAttemptRecord(const AttemptRecord& record, const std::string& path) {
  return ReplaceFile(path, ToJson(record) + "\n");
}

}  // namespace muster::agent

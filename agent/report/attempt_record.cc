// SPDX-License-Identifier: Apache-2.0
#include "agent/report/attempt_record.h"

#include <algorithm>
#include <concepts>
#include <map>

#include "agent/report/training_record.h"
#include "base/json_fields.h"
#include "base/replace_file.h"
#include "base/text.h"

namespace muster::agent {
namespace {

// What is known about one worker. Null: it has not ended, or did not hang.
struct WorkerFacts {
  const launcher::ExitRecord* exit = nullptr;
  const AttemptRecord::Hang* hang = nullptr;
};

// Each makes the JSON text of one value.
std::string Written(const std::string& text) {
  const bool plain =
      std::all_of(text.begin(), text.end(), [](char c) { return c >= ' ' && c <= '~' && c != '"' && c != '\\'; });
  return plain ? '"' + text + '"' : WriteJson(Json(text));
}
std::string Written(bool value) { return value ? "true" : "false"; }
std::string Written(double number) { return WriteJson(Json(number)); }
template <std::integral Number>
std::string Written(Number number) {
  return std::to_string(number);
}
template <class T>
std::string Written(const std::optional<T>& value) {
  return value ? Written(*value) : "null";
}
// `items` are JSON texts. `line` begins a line: the line break and the indentation.
std::string List(const std::vector<std::string>& items, std::string_view line) {
  if (items.empty()) return "[]";
  return fmt::format("[{0}  {1}{0}]", line, Join(items, fmt::format(",{}  ", line)));
}

// The text of an object, a field a line, in the order of the calls. A tree of values would cost ten times the time, and
// in a restart each agent writes three records.
class ObjectText {
 public:
  explicit ObjectText(std::string_view line) : line_(line) {}  // as List()
  template <class T>
  void Add(std::string_view name, const T& value) {
    AddJson(name, Written(value));
  }
  void AddJson(std::string_view name, std::string_view json) {
    text_ += text_.size() > 1 ? "," : "";
    text_ += line_;
    text_ += "  \"";
    text_ += name;
    text_ += "\": ";
    text_ += json;
  }
  std::string Text() && { return std::move(text_.append(line_).append("}")); }

 private:
  const std::string_view line_;
  std::string text_ = "{";
};

std::string WorkerText(const AttemptRecord& record, int local_rank, const WorkerFacts& facts, std::string_view line) {
  ObjectText worker(line);
  worker.Add("local_rank", local_rank);
  worker.Add("rank", record.assignment.seat.first_rank + local_rank);
  const bool started = static_cast<size_t>(local_rank) < record.pids.size();
  worker.Add("pid", started ? std::optional(record.pids[static_cast<size_t>(local_rank)]) : std::nullopt);
  if (facts.hang != nullptr) {
    worker.Add("hang", facts.hang->why);
    worker.Add("hang_place", facts.hang - record.hangs.data());
  }
  if (facts.exit != nullptr) {
    const launcher::ExitRecord& exit = *facts.exit;
    worker.Add("exit_code", exit.exit_code);
    worker.Add("signal", exit.signal == 0 ? std::nullopt : std::optional(std::string(SignalName(exit.signal))));
    worker.Add("core_dumped", exit.core_dumped);
    worker.Add("oom_killed", exit.oom_killed);
    worker.Add("after_stop", exit.after_stop);
    worker.Add("max_rss_bytes", exit.max_rss_bytes);
    worker.Add("cpu_seconds", std::chrono::duration<double>(exit.cpu_time).count());
    worker.Add("lived_seconds", std::chrono::duration<double>(exit.lived).count());
    worker.Add("ended_unix_ms", exit.ended_unix_millis);
    if (!exit.error_file.empty()) worker.Add("error_file", exit.error_file);
    if (!exit.error_message.empty()) worker.Add("error_message", exit.error_message);
    if (!exit.stderr_tail.empty()) {
      std::vector<std::string> lines;
      for (const std::string& said : exit.stderr_tail) lines.push_back(Written(said));
      worker.AddJson("stderr_tail", List(lines, fmt::format("{}  ", line)));
    }
    if (!exit.stderr_reason.empty()) worker.Add("stderr_reason", exit.stderr_reason);
  }
  return std::move(worker).Text();
}

}  // namespace

size_t AttemptRecord::HangPlace(int local_rank) const {
  auto found =
      std::find_if(hangs.begin(), hangs.end(), [&](const Hang& hang) { return hang.local_rank == local_rank; });
  return static_cast<size_t>(found - hangs.begin());
}

std::string ToJson(const AttemptRecord& record) {
  const rendezvous::Assignment& assignment = record.assignment;
  ObjectText json("\n");
  json.Add("run_id", record.run_id);
  json.Add("attempt", record.attempt);
  json.Add("muster", record.version);
  json.Add("node", assignment.seat.node.name);
  json.Add("host", assignment.seat.node.host);
  json.Add("round", assignment.id.number);
  json.Add("term", assignment.id.term);
  json.Add("node_rank", assignment.node_rank);
  json.Add("node_count", assignment.node_count);
  json.Add("world_size", assignment.world_size);
  json.Add("first_rank", assignment.seat.first_rank);
  json.Add("restart_count", assignment.restart_count);
  json.Add("max_restarts", assignment.max_restarts);
  json.Add("master", fmt::format("{}:{}", assignment.master_host, assignment.master_port));
  json.Add("start_reason", record.start_reason);
  json.Add("started_unix_ms", record.started_unix_ms);
  json.Add("workers_started_unix_ms", record.workers_started_unix_ms);
  json.Add("standby_workers", record.standby_workers);
  json.Add("first_output_seconds", record.first_output_seconds);
  json.Add("stopping_unix_ms", record.stopping_unix_ms);
  json.Add("ended_unix_ms", record.ended_unix_ms);
  json.Add("reason", record.end_reason.empty() ? std::nullopt : std::optional(record.end_reason));
  if (record.job) {
    ObjectText job("\n  ");
    job.Add("exit_code", record.job->exit_code);
    job.Add("class", std::string(ExitClassName(record.job->exit_class)));
    job.Add("reason", record.job->reason);
    json.AddJson("job", std::move(job).Text());
  } else {
    json.AddJson("job", "null");
  }
  std::map<int, WorkerFacts> workers;  // by local rank
  for (const launcher::ExitRecord& exit : record.exits) workers[exit.local_rank].exit = &exit;
  for (const AttemptRecord::Hang& hang : record.hangs) workers[hang.local_rank].hang = &hang;
  std::vector<std::string> lines;
  for (int rank = 0; rank < assignment.seat.node.slots; ++rank) {
    lines.push_back(WorkerText(record, rank, workers[rank], "\n    "));
  }
  json.AddJson("workers", List(lines, "\n  "));
  if (!record.training.empty()) {
    json.AddJson("training", List(TrainingTexts(record.training, assignment.seat.first_rank), "\n  "));
  }
  if (!record.curve.empty()) json.AddJson("curve", CurveText(record.curve));
  if (record.spent) json.AddJson("seconds", SpentText(*record.spent));
  return std::move(json).Text();
}

Status WriteAttemptRecord(const AttemptRecord& record, const std::string& path) {
  ReplaceFileOptions options;
  options.temporary = path + ".part";  // the folder has one writer
  return ReplaceFile(path, ToJson(record) + "\n", options);
}

}  // namespace muster::agent

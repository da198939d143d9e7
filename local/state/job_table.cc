// SPDX-License-Identifier: Apache-2.0
#include "local/state/job_table.h"

#include <algorithm>
#include <array>
#include <set>

#include "base/run_facts_json.h"
#include "base/text.h"

namespace muster::local {
namespace {

using Row = std::array<std::string, 9>;

// "45 s", "3 min", "2 h", "5 d".
std::string SpanText(int64_t seconds) {
  if (seconds < 120) return fmt::format("{} s", seconds);
  if (seconds < int64_t{120} * 60) return fmt::format("{} min", seconds / 60);
  if (seconds < int64_t{48} * 3600) return fmt::format("{} h", seconds / 3600);
  return fmt::format("{} d", seconds / 86400);
}

std::string StateOf(const FoundJob& job) {
  if (job.lost()) return "Lost";
  return job.record->state.empty() ? "Starting" : job.record->state;
}

// "ready/all" nodes while the job runs; the number of all nodes after that.
std::string NodesOf(const FoundJob& job) {
  std::set<int> all, ready;
  for (const PodRecord& pod : job.record->pods) {
    if (pod.node_rank < 0) continue;
    all.insert(pod.node_rank);
    if (!pod.ended && pod.ready) ready.insert(pod.node_rank);
  }
  return job.runs ? fmt::format("{}/{}", ready.size(), all.size()) : fmt::format("{}", all.size());
}

Row RowOf(const FoundJob& job, const ProgressByJob& progress, WallTime now) {
  if (absl::IsNotFound(job.record.status())) {
    return {job.name, "-", job.runs ? "Starting" : "-", "-", "-", "-", "-", "-", "-"};
  }
  if (!job.record.ok()) return {job.name, "-", std::string(Message(job.record.status()))};
  const RunRecord& record = *job.record;
  const auto told = progress.find(job.name);
  const bool knows_left = told != progress.end() && told->second.left;
  return {job.name,
          record.kind,
          StateOf(job),
          Ago(record.ended.value_or(record.begun), now),
          NodesOf(job),
          told == progress.end() ? "-" : ProgressText(told->second),
          knows_left ? SpanText(std::chrono::duration_cast<std::chrono::seconds>(*told->second.left).count()) : "-",
          fmt::format("{}", record.restarts),
          record.ended ? fmt::format("{}", record.exit_code) : "-"};
}

}  // namespace

std::string Ago(WallTime then, WallTime now) {
  return SpanText(std::chrono::duration_cast<std::chrono::seconds>(std::max(now, then) - then).count());
}

std::string JobTable(const std::vector<FoundJob>& jobs, const ProgressByJob& progress, WallTime now) {
  std::vector<Row> rows = {{"JOB", "KIND", "STATE", "SINCE", "NODES", "PROGRESS", "LEFT", "RESTARTS", "CODE"}};
  for (const FoundJob& job : jobs) rows.push_back(RowOf(job, progress, now));
  std::array<size_t, std::tuple_size_v<Row>> widths{};
  for (const Row& row : rows) {
    if (row[3].empty()) continue;  // an error message takes the rest of its line
    for (size_t i = 0; i < row.size(); ++i) widths[i] = std::max(widths[i], row[i].size());
  }
  std::string table;
  for (const Row& row : rows) {
    std::string line;
    for (size_t i = 0; i < row.size(); ++i) line += fmt::format("{:<{}}  ", row[i], widths[i]);
    line.erase(line.find_last_not_of(' ') + 1);
    table += line + "\n";
  }
  return table;
}

Json JobsAsJson(const std::vector<FoundJob>& jobs, const ProgressByJob& progress) {
  Json all = Json::array();
  for (const FoundJob& job : jobs) {
    Json one = job.record.ok() ? Json::parse(ToJson(*job.record)) : Json::object();
    one["name"] = job.name;
    one["runs"] = job.runs;
    one["lost"] = job.lost();
    if (const auto told = progress.find(job.name); told != progress.end())
      one["training"] = Json(TrainingJson(told->second));
    if (!job.record.ok() && !absl::IsNotFound(job.record.status())) one["error"] = Message(job.record.status());
    all.push_back(std::move(one));
  }
  return all;
}

}  // namespace muster::local

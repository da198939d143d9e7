// SPDX-License-Identifier: Apache-2.0
#include "agent/watch/status_text.h"

#include <algorithm>
#include <cmath>

#include "base/failure_json.h"
#include "base/json_fields.h"
#include "base/run_facts_json.h"
#include "base/text.h"

namespace muster::agent {
namespace {

constexpr int64_t kMostRanks = 1 << 30;

// "10.0.0.7" of "10.0.0.7:29400", "fd00::7" of "[fd00::7]:29400".
std::string_view AddressOf(std::string_view control_address) {
  std::string_view address = control_address.substr(0, control_address.rfind(':'));
  if (address.starts_with('[') && address.ends_with(']')) address = address.substr(1, address.size() - 2);
  return address;
}

double InSeconds(Duration duration) { return std::chrono::duration<double>(duration).count(); }

void AddNumber(nlohmann::ordered_json& json, const char* name, const std::optional<double>& value) {
  if (value && std::isfinite(*value)) json[name] = *value;
}

nlohmann::ordered_json RankJson(const rendezvous::RankTelemetry& rank, std::optional<int> first_rank) {
  nlohmann::ordered_json json;
  if (first_rank) json["rank"] = *first_rank + rank.local_rank;
  json["local_rank"] = rank.local_rank;
  json["pid"] = rank.pid;
  if (rank.exit_code) json["exit_code"] = *rank.exit_code;
  json["cpus"] = rank.cpus;
  json["memory_bytes"] = rank.memory_bytes;
  AddNumber(json, "gpu_share", rank.gpu_share);
  if (rank.gpu_memory_bytes) json["gpu_memory_bytes"] = *rank.gpu_memory_bytes;
  if (!rank.last_line.empty()) json["last_line"] = rank.last_line;
  if (rank.silent) json["silent_seconds"] = InSeconds(*rank.silent);
  if (rank.position) json["unit"] = rank.in_epochs ? "epochs" : "steps";
  AddNumber(json, "position", rank.position);
  AddNumber(json, "end", rank.end);
  AddNumber(json, "epoch", rank.epoch);
  AddNumber(json, "loss", rank.loss);
  if (rank.step_time) json["step_seconds"] = InSeconds(*rank.step_time);
  return json;
}

// Adds what somebody sees who looks at the run.
void AddTelemetry(nlohmann::ordered_json& node, const rendezvous::Telemetry& telemetry, std::optional<int> first_rank) {
  node["telemetry_term"] = telemetry.round.term;
  node["telemetry_round"] = telemetry.round.number;
  node["ranks"] = nlohmann::ordered_json::array();
  for (const rendezvous::RankTelemetry& rank : telemetry.ranks) node["ranks"].push_back(RankJson(rank, first_rank));
  for (const rendezvous::CurvePoint& point : telemetry.curve) node["curve"].push_back({point.position, point.loss});
  for (const auto& [name, seconds] : telemetry.seconds) node["seconds"][name] = seconds;
}

nlohmann::ordered_json RoundJson(const rendezvous::RoundMark& mark) {
  nlohmann::ordered_json json;
  json["term"] = mark.id.term;
  json["round"] = mark.id.number;
  json["nodes"] = mark.nodes;
  json["world_size"] = mark.world_size;
  json["restart_count"] = mark.restart_count;
  json["cause"] = RoundCauseName(mark.cause);
  json["reason"] = mark.reason;
  json["began_seconds"] = InSeconds(mark.began);
  if (mark.stopping) {
    json["stopping_seconds"] = InSeconds(*mark.stopping);
    json["stop_reason"] = mark.stop_reason;
  }
  return json;
}

}  // namespace

std::vector<std::optional<int>> FirstRanks(const std::vector<rendezvous::StatusLine>& nodes) {
  std::vector<std::pair<int, size_t>> order;
  for (size_t at = 0; at < nodes.size(); ++at) {
    if (nodes[at].rank) order.emplace_back(*nodes[at].rank, at);
  }
  std::sort(order.begin(), order.end());
  std::vector<std::optional<int>> first(nodes.size());
  int64_t next = 0;
  for (const auto& [rank, at] : order) {
    first[at] = static_cast<int>(next);
    next = std::min(next + nodes[at].slots, kMostRanks);
  }
  return first;
}

std::string_view RoundCauseName(rendezvous::RoundCause cause) {
  switch (cause) {
    case rendezvous::RoundCause::kMembership:
      return "membership";
    case rendezvous::RoundCause::kPreemption:
      return "preemption";
    case rendezvous::RoundCause::kFailure:
      return "failure";
    case rendezvous::RoundCause::kSuccess:
      return "success";
  }
  return "unknown";
}

std::string VersionOf(const rendezvous::StatusReport& report) {
  uint64_t hash = 0xcbf29ce484222325;  // FNV-1a
  const auto add = [&hash](std::string_view text) {
    for (const char byte : text) hash = (hash ^ static_cast<unsigned char>(byte)) * 0x100000001b3;
  };
  add(fmt::format("{} {}", report.restart_count, report.cut_off));
  for (const rendezvous::LostNode& lost : report.lost) add(fmt::format("\n{} {}", lost.node, lost.closed));
  return fmt::format("{:016x}", hash);
}

std::string StatusJson(const rendezvous::StatusReport& report, const StatusAnswer& answer) {
  nlohmann::ordered_json json;
  json["run_id"] = report.run_id;
  json["phase"] = report.phase;
  json["term"] = report.round.term;
  json["round"] = report.round.number;
  json["restart_count"] = report.restart_count;
  json["max_restarts"] = report.max_restarts;
  json["min_nodes"] = report.min_nodes;
  json["max_nodes"] = report.max_nodes;
  json["reason"] = report.reason;
  if (report.overcome) json["overcome"] = FailureJson(*report.overcome);
  json["nodes"] = nlohmann::ordered_json::array();
  const std::vector<std::optional<int>> first_ranks = FirstRanks(report.nodes);
  for (size_t at = 0; at < report.nodes.size(); ++at) {
    const rendezvous::StatusLine& line = report.nodes[at];
    nlohmann::ordered_json node;
    node["node"] = line.node;
    node["host"] = line.host;
    node["state"] = line.state;
    node["rank"] = line.rank ? nlohmann::ordered_json(*line.rank) : nlohmann::ordered_json(nullptr);
    node["slots"] = line.slots;
    node["pid"] = line.pid;
    node["last_heard_seconds"] = InSeconds(line.last_heard);
    if (!line.remark.empty()) node["remark"] = line.remark;
    if (line.telemetry) AddTelemetry(node, *line.telemetry, first_ranks[at]);
    json["nodes"].push_back(std::move(node));
  }
  json["heartbeat_timeout_seconds"] = InSeconds(report.heartbeat_timeout);
  json["cut_off"] = report.cut_off;
  json["lost"] = nlohmann::ordered_json::array();
  for (const rendezvous::LostNode& lost : report.lost) {
    nlohmann::ordered_json node;
    node["node"] = lost.node;
    node["host"] = lost.host;
    node["address"] = AddressOf(lost.control_address);
    node["how"] = lost.closed ? "closed" : "silent";
    node["lost_seconds"] = InSeconds(lost.lost);
    node["last_heard_seconds"] = InSeconds(lost.last_heard);
    json["lost"].push_back(std::move(node));
  }
  for (const rendezvous::RoundMark& mark : report.rounds) json["rounds"].push_back(RoundJson(mark));
  json["version"] = VersionOf(report);
  if (!answer.source.empty()) json["source"] = answer.source;
  if (!answer.job.empty()) json["job"] = answer.job;
  if (!answer.muster.empty()) json["muster"] = answer.muster;
  if (!answer.source_reason.empty()) json["source_reason"] = answer.source_reason;
  if (answer.standby_workers) json["standby_workers"] = *answer.standby_workers;
  if (answer.first_output_seconds) json["first_output_seconds"] = *answer.first_output_seconds;
  if (answer.training) json["training"] = TrainingJson(*answer.training);
  if (answer.time) {
    AddNumber(json, "goodput", GoodputOf(answer.time->spent));
    json["began_unix_ms"] = answer.time->began_unix_ms;
    json["seconds"] = SecondsJson(answer.time->spent);
  }
  return WriteJson(json);
}

std::string StatusTable(const rendezvous::StatusReport& report) {
  std::string text = fmt::format("run {}: {}, round {} (term {}), restarts {} of {}, nodes {} to {}\n", report.run_id,
                                 report.phase, report.round.number, report.round.term, report.restart_count,
                                 report.max_restarts, report.min_nodes, report.max_nodes);
  if (!report.reason.empty()) text += fmt::format("  {}\n", report.reason);
  text += fmt::format("  {:>4}  {:<24} {:<20} {:<10} {:>5} {:>8}  {}\n", "rank", "node", "host", "state", "slots",
                      "pid", "heard");
  for (const rendezvous::StatusLine& line : report.nodes) {
    text += fmt::format("  {:>4}  {:<24} {:<20} {:<10} {:>5} {:>8}  {:.1f} s ago{}{}\n",
                        line.rank ? std::to_string(*line.rank) : "-", line.node, line.host, line.state, line.slots,
                        line.pid, InSeconds(line.last_heard), line.remark.empty() ? "" : "; ", line.remark);
  }
  for (const rendezvous::LostNode& lost : report.lost) {
    text += fmt::format("  lost {:.1f} s ago: node {}{}: {}\n", InSeconds(lost.lost), lost.node,
                        lost.host.empty() ? "" : fmt::format(" (host {})", lost.host),
                        lost.closed ? "its connection closed" : "it fell silent");
  }
  return text;
}

}  // namespace muster::agent

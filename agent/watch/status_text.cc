#include "agent/watch/status_text.h"

#include "base/failure_json.h"
#include "base/json_fields.h"
#include "base/text.h"

namespace muster::agent {

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
  for (const rendezvous::StatusLine& line : report.nodes) {
    nlohmann::ordered_json node;
    node["node"] = line.node;
    node["host"] = line.host;
    node["state"] = line.state;
    node["rank"] = line.rank ? nlohmann::ordered_json(*line.rank) : nlohmann::ordered_json(nullptr);
    node["slots"] = line.slots;
    node["pid"] = line.pid;
    node["last_heard_seconds"] = std::chrono::duration<double>(line.last_heard).count();
    if (!line.remark.empty()) node["remark"] = line.remark;
    json["nodes"].push_back(std::move(node));
  }
  if (!answer.source.empty()) json["source"] = answer.source;
  if (!answer.source_reason.empty()) json["source_reason"] = answer.source_reason;
  if (answer.standby_workers) json["standby_workers"] = *answer.standby_workers;
  if (answer.first_output_seconds) json["first_output_seconds"] = *answer.first_output_seconds;
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
                        line.pid, std::chrono::duration<double>(line.last_heard).count(),
                        line.remark.empty() ? "" : "; ", line.remark);
  }
  return text;
}

}  // namespace muster::agent

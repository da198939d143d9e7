// SPDX-License-Identifier: Apache-2.0
#include "agent/page/rank_table.h"

#include <algorithm>
#include <set>

#include "agent/report/report_text.h"
#include "agent/watch/status_text.h"
#include "base/text.h"
#include "base/utf8.h"

namespace muster::agent {
namespace {

using rendezvous::RankTelemetry;
using rendezvous::StatusLine;

constexpr size_t kLongestName = 120;
constexpr std::string_view kUnknown = "\u2013";

uint64_t Hash(std::string_view text, uint64_t hash = 0xcbf29ce484222325) {  // FNV-1a
  for (const char byte : text) hash = (hash ^ static_cast<unsigned char>(byte)) * 0x100000001b3;
  return hash;
}

int64_t Millis(Duration duration) { return duration / std::chrono::milliseconds(1); }

// Coarse, so that a healthy row does not change each second.
std::string Age(Duration age) {
  const int64_t millis = Millis(age);
  return millis < 2000 ? "now" : FormatSpan(millis < 60'000 ? millis / 1000 * 1000 : millis);
}

std::string Gpu(const std::optional<double>& share, const std::optional<int64_t>& memory) {
  std::string text = share ? fmt::format("{:.0f} %", 100 * *share) : "";
  if (memory) text += (text.empty() ? "" : ", ") + FormatBytes(*memory);
  return text.empty() ? std::string(kUnknown) : text;
}

std::string Position(const std::optional<double>& position, const std::optional<double>& end, bool in_epochs) {
  if (!position) return std::string(kUnknown);
  const std::string text = FormatPosition(*position, in_epochs);
  return end ? fmt::format("{} / {}", text, FormatPosition(*end, in_epochs)) : text;
}

std::string StepTime(const std::optional<Duration>& step_time) {
  return step_time ? FormatSeconds(std::chrono::duration<double>(*step_time).count()) : std::string(kUnknown);
}

std::string StateOf(const RankTelemetry& rank, const StatusLine& node, bool is_slow) {
  if (rank.exit_code) return *rank.exit_code == 0 ? "ended" : fmt::format("exit {}", *rank.exit_code);
  return is_slow ? "slow" : node.state;
}

// The columns of a row, in their order.
struct Cells {
  std::string name, state, age, cpus, memory, gpu, position, step, last;
  std::vector<std::string> List(bool with_gpu) && {
    std::vector<std::string> cells = {std::move(name), ShownText(state), std::move(age), std::move(cpus),
                                      std::move(memory)};
    if (with_gpu) cells.push_back(std::move(gpu));
    for (std::string* cell : {&position, &step}) cells.push_back(std::move(*cell));
    cells.push_back(ShownText(last));
    return cells;
  }
};

TableRow RankRow(const RankTelemetry& rank, const StatusLine& node, int first_rank, int slow, bool with_gpu) {
  const int global = first_rank + rank.local_rank;
  Cells cells{.name = std::to_string(global),
              .state = StateOf(rank, node, global == slow),
              .age = rank.silent ? Age(*rank.silent) : std::string(kUnknown),
              .cpus = fmt::format("{:.1f}", rank.cpus),
              .memory = FormatBytes(rank.memory_bytes),
              .gpu = Gpu(rank.gpu_share, rank.gpu_memory_bytes),
              .position = Position(rank.position, rank.end, rank.in_epochs),
              .step = StepTime(rank.step_time),
              .last = Abbreviated(rank.last_line, rendezvous::kMaxLastLine)};
  return {fmt::format("r{}", global), std::move(cells).List(with_gpu)};
}

// The sums of its ranks; of positions and step times that of the rank that is behind, and of the slowest.
TableRow NodeRow(const StatusLine& node, std::string id, std::optional<int> first_rank, bool with_gpu) {
  Cells cells{.name = ShownText(Abbreviated(node.node, kLongestName)),
              .state = node.state,
              .age = Age(node.last_heard),
              .last = node.remark};
  if (node.rank) {
    cells.name += node.slots > 1 && first_rank
                      ? fmt::format(" \u00B7 {}\u2013{}", *first_rank, *first_rank + node.slots - 1)
                  : first_rank ? fmt::format(" \u00B7 {}", *first_rank)
                               : "";
  }
  RankTelemetry sum;
  double gpus = 0;
  int with_share = 0;
  if (node.telemetry) {
    for (const RankTelemetry& rank : node.telemetry->ranks) {
      sum.cpus += rank.cpus;
      sum.memory_bytes += rank.memory_bytes;
      if (rank.gpu_share) gpus += *rank.gpu_share, ++with_share;
      if (rank.gpu_memory_bytes) sum.gpu_memory_bytes = sum.gpu_memory_bytes.value_or(0) + *rank.gpu_memory_bytes;
      if (rank.position && rank.position < sum.position.value_or(1e300)) {
        sum.position = rank.position;
        sum.end = rank.end;
        sum.in_epochs = rank.in_epochs;
      }
      if (rank.step_time) sum.step_time = std::max(sum.step_time.value_or(Duration{}), *rank.step_time);
    }
  }
  if (with_share > 0) sum.gpu_share = gpus / with_share;
  const bool known = node.telemetry.has_value();
  cells.cpus = known ? fmt::format("{:.1f}", sum.cpus) : std::string(kUnknown);
  cells.memory = known ? FormatBytes(sum.memory_bytes) : std::string(kUnknown);
  cells.gpu = Gpu(sum.gpu_share, sum.gpu_memory_bytes);
  cells.position = Position(sum.position, sum.end, sum.in_epochs);
  cells.step = StepTime(sum.step_time);
  return {std::move(id), std::move(cells).List(with_gpu)};
}

bool IsHealthy(const StatusLine& node) {
  const bool failed = node.telemetry && std::any_of(node.telemetry->ranks.begin(), node.telemetry->ranks.end(),
                                                    [](auto& rank) { return rank.exit_code.value_or(0) != 0; });
  return !failed && node.remark.empty() && node.state != "lost";
}

// Whether each node is shown: those with trouble, then the others, as long as there is room.
std::vector<bool> Shown(const std::vector<StatusLine>& nodes, const TableLimits& limits) {
  std::vector<bool> shown(nodes.size());
  size_t count = 0, ranks = 0;
  for (const bool healthy : {false, true}) {
    for (size_t at = 0; at < nodes.size(); ++at) {
      const size_t more = nodes[at].telemetry ? nodes[at].telemetry->ranks.size() : 0;
      if (IsHealthy(nodes[at]) != healthy || count == limits.nodes || ranks + more > limits.ranks) continue;
      shown[at] = true;
      ++count;
      ranks += more;
    }
  }
  return shown;
}

std::string RowHtml(const TableRow& row) {
  std::string html = fmt::format("<tr id=\"{}\"><th scope=\"row\">{}</th>", row.id, EscapeHtml(row.cells[0]));
  for (size_t at = 1; at < row.cells.size(); ++at) {
    const std::string text = EscapeHtml(row.cells[at]);
    if (at == 1) {
      html += fmt::format("<td data-state=\"{0}\">{0}</td>", text);
    } else {
      html += fmt::format("<td{}>{}</td>", at + 1 == row.cells.size() ? " class=\"last\"" : "", text);
    }
  }
  return html + "</tr>\n";
}

std::string GroupHtml(const RankTable& table, const TableGroup& group) {
  std::string html = fmt::format("<details class=\"node\" id=\"{}\"{}><summary id=\"{}\">", group.id,
                                 table.open ? " open" : "", group.head.id);
  for (size_t at = 0; at < group.head.cells.size(); ++at) {
    const std::string text = EscapeHtml(group.head.cells[at]);
    html += at == 1 ? fmt::format("<span data-state=\"{0}\">{0}</span>", text) : fmt::format("<span>{}</span>", text);
  }
  html += "</summary>";
  if (group.rows.empty()) return html + "<p class=\"muted\">Nothing is known of its workers.</p></details>\n";
  std::string columns, heads;
  for (size_t at = 0; at < table.columns.size(); ++at) {
    const size_t width = !table.with_gpu && at > 4 ? at + 2 : at + 1;  // w6 is that of the GPU's column
    columns += at + 1 == table.columns.size() ? "<col>" : fmt::format("<col class=\"w{}\">", width);
    heads += fmt::format("<th scope=\"col\">{}</th>", table.columns[at]);
  }
  html += fmt::format("<table><colgroup>{}</colgroup><thead><tr>{}</tr></thead><tbody>\n", columns, heads);
  for (const TableRow& row : group.rows) html += RowHtml(row);
  return html + "</tbody></table></details>\n";
}

// `,"id":[1,"text"]` for the cells that differ.
void AddChanges(const TableRow* before, const TableRow& now, std::string& json) {
  std::string cells;
  for (size_t at = 0; at < now.cells.size(); ++at) {
    if (before != nullptr && before->cells[at] == now.cells[at]) continue;
    cells += fmt::format("{}{},{}", cells.empty() ? "" : ",", at, JsonString(now.cells[at]));
  }
  if (!cells.empty()) json += fmt::format("{}\"{}\":[{}]", json.empty() ? "" : ",", now.id, cells);
}

}  // namespace

RankTable MakeRankTable(const rendezvous::StatusReport& report, int slow, const TableLimits& limits) {
  RankTable table;
  const std::vector<bool> shown = Shown(report.nodes, limits);
  const std::vector<std::optional<int>> first_ranks = FirstRanks(report.nodes);
  size_t ranks = 0, all_ranks = 0;
  for (const StatusLine& node : report.nodes) {
    if (!node.telemetry) continue;
    all_ranks += node.telemetry->ranks.size();
    for (const RankTelemetry& rank : node.telemetry->ranks) {
      table.with_gpu |= rank.gpu_share.has_value() || rank.gpu_memory_bytes.has_value();
    }
  }
  table.columns = {"Node, rank", "State", "Heard", "CPUs", "Memory", "GPU", "Position", "Step", "Last line"};
  if (!table.with_gpu) table.columns.erase(table.columns.begin() + 5);
  uint64_t outline = Hash(Join(table.columns, "|"));
  std::set<std::string> ids;
  for (size_t at = 0; at < report.nodes.size(); ++at) {
    if (!shown[at]) continue;
    const StatusLine& node = report.nodes[at];
    std::string name = fmt::format("{:x}", Hash(node.node) >> 24);
    while (!ids.insert(name).second) name += "x";
    TableGroup group{
        .id = "g-" + name, .head = NodeRow(node, "n-" + name, first_ranks[at], table.with_gpu), .rows = {}};
    outline = Hash(group.id, outline);
    if (node.telemetry && first_ranks[at]) {
      for (const RankTelemetry& rank : node.telemetry->ranks) {
        group.rows.push_back(RankRow(rank, node, *first_ranks[at], slow, table.with_gpu));
        outline = Hash(group.rows.back().id, outline);
      }
      ranks += group.rows.size();
    }
    table.groups.push_back(std::move(group));
  }
  table.open = ranks <= limits.open;
  table.nodes_left_out = report.nodes.size() - table.groups.size();
  table.ranks_left_out = all_ranks - ranks;
  table.outline = fmt::format("{:x}", outline);
  return table;
}

std::string RankTableHtml(const RankTable& table) {
  if (table.groups.empty()) return "";
  std::string heads, groups;
  for (const std::string& column : table.columns) heads += fmt::format("<span>{}</span>", column);
  for (const TableGroup& group : table.groups) groups += GroupHtml(table, group);
  std::string html = fmt::format(
      "<div class=\"scroll\" tabindex=\"0\" role=\"region\" aria-label=\"Nodes and ranks\"><div class=\"ranks{}\" "
      "id=\"ranks\" data-outline=\"{}\"><div class=\"cols\" aria-hidden=\"true\">{}</div>\n{}</div></div>\n",
      table.with_gpu ? " gpu" : "", table.outline, heads, groups);
  if (table.nodes_left_out > 0) {
    html += fmt::format("<p class=\"muted\">{} with {} left out.</p>\n",
                        Counted(static_cast<int64_t>(table.nodes_left_out), "node"),
                        Counted(static_cast<int64_t>(table.ranks_left_out), "rank"));
  }
  return html;
}

std::string ChangedCells(const RankTable* before, const RankTable& now,
                         const std::function<bool(const std::string& group)>& shown) {
  std::string json;
  for (size_t at = 0; at < now.groups.size(); ++at) {
    const TableGroup& group = now.groups[at];
    const TableGroup* old = before == nullptr ? nullptr : &before->groups[at];
    AddChanges(old == nullptr ? nullptr : &old->head, group.head, json);
    if (!shown(group.id)) continue;
    for (size_t row = 0; row < group.rows.size(); ++row) {
      AddChanges(old == nullptr ? nullptr : &old->rows[row], group.rows[row], json);
    }
  }
  return json.empty() ? "" : "{" + json + "}";
}

std::string JsonString(std::string_view text) {
  std::string json = "\"";
  for (const char c : text) {
    if (c == '"' || c == '\\') {
      json += '\\';
      json += c;
    } else if (static_cast<unsigned char>(c) < 0x20) {
      json += fmt::format("\\u{:04x}", static_cast<unsigned char>(c));
    } else {
      json += c;
    }
  }
  return json + "\"";
}

}  // namespace muster::agent

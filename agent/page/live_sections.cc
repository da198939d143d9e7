// SPDX-License-Identifier: Apache-2.0
#include "agent/page/live_sections.h"

#include <algorithm>
#include <cmath>

#include "agent/page/heat_map.h"
#include "agent/page/loss_curve.h"
#include "agent/page/time_bar.h"
#include "agent/page/timeline_plot.h"
#include "agent/page/widgets.h"
#include "agent/report/report_text.h"
#include "agent/watch/status_text.h"
#include "base/text.h"
#include "base/utf8.h"

namespace muster::agent {
namespace {

using rendezvous::RoundMark;
using rendezvous::StatusLine;
using rendezvous::StatusReport;

constexpr size_t kLongestReason = 300;
constexpr size_t kMostReasons = 20;
constexpr double kFarBehind = 0.05;  // of the position of the rank that is furthest
constexpr size_t kMostPods = 3;
constexpr size_t kMostCells = 1 << 16;  // a node may say that it has any number of slots

int64_t Millis(Duration duration) { return std::chrono::round<std::chrono::milliseconds>(duration).count(); }

int64_t WorldSize(const StatusReport& report) {
  int64_t workers = 0;
  for (const StatusLine& node : report.nodes) workers += node.rank ? node.slots : 0;
  return workers;
}

int64_t InRound(const StatusReport& report) {
  return std::count_if(report.nodes.begin(), report.nodes.end(), [](auto& node) { return node.rank.has_value(); });
}

// Whether a failure ended the round at `at`: the next one was made for it.
bool EndedByFailure(const std::vector<RoundMark>& rounds, size_t at) {
  return at + 1 < rounds.size() && rounds[at + 1].cause == rendezvous::RoundCause::kFailure;
}

// Coarse, so that the drawing of a long run does not change each second.
int64_t Rounded(int64_t millis, int64_t span) {
  const int64_t grain = std::max<int64_t>(1000, span / 250 / 1000 * 1000);
  return (millis + grain - 1) / grain * grain;
}

std::string RoundsTable(const std::vector<RoundMark>& rounds) {
  std::string html =
      "<table class=\"attempts\"><thead><tr><th>Round</th><th>Workers</th><th>Why it began</th><th>Why it "
      "ended</th></tr>"
      "</thead>\n";
  const size_t shown = std::min(rounds.size(), kMostReasons);
  for (size_t at = rounds.size(); at-- > rounds.size() - shown;) {
    const RoundMark& round = rounds[at];
    html += fmt::format(
        "<tbody><tr><td data-label=\"Round\" class=\"num\">{}</td><td data-label=\"Workers\" class=\"num\">{} on "
        "{}</td>"
        "<td data-label=\"Began\">{}</td><td data-label=\"Ended\">{}</td></tr></tbody>\n",
        round.id.number, round.world_size, Counted(round.nodes, "node"),
        EscapeHtml(Abbreviated(round.reason, kLongestReason)),
        round.stopping ? EscapeHtml(Abbreviated(round.stop_reason, kLongestReason)) : "it goes on");
  }
  html += "</table>\n";
  if (shown < rounds.size()) html += fmt::format("<p class=\"muted\">{} before.</p>\n", rounds.size() - shown);
  return html;
}

// "-l job-name=digits-node-0,batch.kubernetes.io/job-completion-index=3" of the host "digits-node-0-3". Empty: the pod
// has the name of its host.
std::string SelectorOf(std::string_view host, const LiveOptions& options) {
  const size_t dash = host.rfind('-');
  if (!options.is_indexed || dash == std::string_view::npos || !ParseInt(host.substr(dash + 1))) return "";
  return "-l " + ShellWord(fmt::format("job-name={},batch.kubernetes.io/job-completion-index={}", host.substr(0, dash),
                                       host.substr(dash + 1)));
}

std::string LogsCommand(const std::string& host, const LiveOptions& options) {
  const std::string selector = SelectorOf(host, options);
  return fmt::format("kubectl -n {} logs -f {}", ShellWord(options.kube_namespace),
                     selector.empty() ? ShellWord(host) : selector);
}

struct AskedWorker {
  int rank = 0;
  const StatusLine* node = nullptr;
  int64_t pid = 0;
};

// The rank that is slow, else the first one that runs and whose process is known.
std::optional<AskedWorker> WorkerToAsk(const LiveFacts& facts) {
  std::optional<AskedWorker> first;
  const std::vector<StatusLine>& nodes = facts.view.report.nodes;
  const std::vector<std::optional<int>> ranks = FirstRanks(nodes);
  for (size_t at = 0; at < nodes.size(); ++at) {
    const StatusLine& node = nodes[at];
    if (!ranks[at] || node.host.empty() || node.pid <= 0 || !node.telemetry) continue;
    if (node.telemetry->round != facts.view.report.round) continue;
    for (const rendezvous::RankTelemetry& told : node.telemetry->ranks) {
      if (told.pid <= 0 || told.exit_code) continue;
      const AskedWorker worker{*ranks[at] + told.local_rank, &node, told.pid};
      if (facts.pace.slow && facts.pace.slow->rank == worker.rank) return worker;
      if (!first || worker.rank < first->rank) first = worker;
    }
  }
  return first;
}

// The agent's own binary prints them, wherever it is in the container.
std::string StacksCommand(const AskedWorker& worker, const LiveOptions& options) {
  const std::string name_space = ShellWord(options.kube_namespace);
  const std::string selector = SelectorOf(worker.node->host, options);
  const std::string pod =
      selector.empty() ? ShellWord(worker.node->host)
                       : fmt::format("\"$(kubectl -n {} get pods {} --field-selector status.phase=Running -o name)\"",
                                     name_space, selector);
  return fmt::format("kubectl -n {} exec {} -- /proc/{}/exe stacks {}", name_space, pod, worker.node->pid, worker.pid);
}

}  // namespace

std::string_view Steady(std::string_view sentence) {
  return sentence.substr(0, std::min(sentence.rfind(" since "), sentence.rfind(", for ")));
}

std::string HeadSection(const LiveFacts& facts) {
  const LiveView& view = facts.view;
  std::string html;
  if (view.source == "node") {
    html +=
        fmt::format("<p class=\"notice\">The coordinator does not answer; only the node that does is shown. {}</p>\n",
                    EscapeHtml(view.source_reason));
  }
  std::vector<PageWarning> warnings;
  for (const LiveWarning& warning : facts.warnings) {
    const bool severe = warning.kind == LiveWarning::Kind::kFailure || warning.kind == LiveWarning::Kind::kLost;
    warnings.push_back({Abbreviated(warning.text, 2 * kLongestReason), severe});
  }
  return html + Warnings(warnings);
}

std::string FiguresSection(const LiveFacts& facts) {
  const StatusReport& report = facts.view.report;
  const LivePace& pace = facts.pace;
  std::vector<Tile> tiles;
  if (pace.position) {
    tiles.push_back({pace.in_epochs ? "Epoch" : "Step", FormatPosition(*pace.position, pace.in_epochs),
                     pace.end ? "of " + FormatPosition(*pace.end, pace.in_epochs) : ""});
    if (pace.behind && *pace.behind < (1 - kFarBehind) * *pace.position) {
      tiles.back().note += fmt::format("{}the last rank is at {}", tiles.back().note.empty() ? "" : "; ",
                                       FormatPosition(*pace.behind, pace.in_epochs));
    }
    if (pace.end && *pace.end > 0) tiles.back().share = std::round(1000 * *pace.position / *pace.end) / 1000;
  }
  if (pace.epoch && !pace.in_epochs) tiles.push_back({"Epoch", fmt::format("{:.4g}", *pace.epoch), ""});
  if (pace.loss) tiles.push_back({"Loss", FormatLoss(*pace.loss), ""});
  if (pace.step_time)
    tiles.push_back({pace.in_epochs ? "An epoch takes" : "A step takes", FormatSpan(Millis(*pace.step_time)),
                     "the median of the ranks"});
  if (pace.left) tiles.push_back({"Left", FormatSpan(Millis(*pace.left)), "at the pace of the slowest rank"});
  if (facts.time.goodput) tiles.push_back({"Goodput", Percent(*facts.time.goodput), "of the time went into training"});
  if (const Duration all = TotalOf(facts.time.spent); all > Duration{}) {
    tiles.push_back({"Runs for", FormatSpan(Millis(all)), ""});
  }
  tiles.push_back({"Workers", std::to_string(WorldSize(report)), "on " + Counted(InRound(report), "node")});
  tiles.push_back(
      {"Restarts", std::to_string(report.restart_count), fmt::format("of {} in the budget", report.max_restarts)});
  return Tiles(tiles);
}

std::string CurveSection(const LiveFacts& facts) {
  for (const StatusLine& node : facts.view.report.nodes) {
    if (!node.telemetry || node.telemetry->curve.empty()) continue;
    const CurveLine line{fmt::format("round {}", node.telemetry->round.number), node.telemetry->curve};
    return PanelContent("Loss", LossCurve({&line, 1}, facts.pace.in_epochs));
  }
  return "";
}

std::string TimeSection(const LiveFacts& facts) {
  return PanelContent("Where the time went", TimeBar(facts.time.spent));
}

std::string HeatSection(const LiveFacts& facts) {
  HeatMap map;
  const std::vector<StatusLine>& nodes = facts.view.report.nodes;
  const std::vector<std::optional<int>> first = FirstRanks(nodes);
  std::vector<std::pair<double, int>> order;
  for (size_t at = 0; at < nodes.size(); ++at) {
    if (first[at]) order.emplace_back(*first[at], static_cast<int>(at));
  }
  std::sort(order.begin(), order.end());
  for (const auto& [first_rank, at] : order) {
    const StatusLine& node = nodes[static_cast<size_t>(at)];
    const size_t begin = map.cells.size();
    map.slots = std::max(map.slots, node.slots);
    for (int rank = 0; rank < node.slots && map.cells.size() < kMostCells; ++rank) {
      map.cells.push_back({static_cast<int>(first_rank) + rank, node.node, std::nullopt});
    }
    if (!node.telemetry || node.telemetry->round != facts.view.report.round) continue;
    for (const rendezvous::RankTelemetry& rank : node.telemetry->ranks) {
      const size_t cell = begin + static_cast<size_t>(std::max(rank.local_rank, 0));
      if (!rank.step_time || cell >= map.cells.size()) continue;
      map.cells[cell].seconds = std::chrono::duration<double>(*rank.step_time).count();
    }
  }
  if (facts.pace.slow) {
    const LivePace::Slow& slow = *facts.pace.slow;
    map.slow = slow.rank;
    map.evidence = fmt::format("Rank {} on {} is slower than the others: {} a step, the others {}.", slow.rank,
                               Abbreviated(slow.node, kLongestReason), FormatSpan(Millis(slow.step_time)),
                               FormatSpan(Millis(slow.others)));
  }
  return PanelContent("Step times", HeatMapHtml(map));
}

std::string RoundsSection(const LiveFacts& facts) {
  const std::vector<RoundMark>& rounds = facts.view.report.rounds;
  if (rounds.empty()) return "";
  const int64_t begin = Millis(rounds.front().began);
  TimelinePlot plot{.name = "Timeline of the rounds",
                    .description = Counted(static_cast<int64_t>(rounds.size()), "round") + "; the table below has them",
                    .from = 0,
                    .to = Rounded(begin, begin),
                    .rows = {{.label = "job", .is_node = true, .bars = {}}},
                    .columns = rounds.size(),
                    .crossed = "a worker failed"};
  for (size_t at = 0; at < rounds.size(); ++at) {
    const RoundMark& round = rounds[at];
    const int64_t from = begin - Millis(round.began);
    const int64_t stop = round.stopping ? begin - Millis(*round.stopping) : plot.to;
    const bool failed = EndedByFailure(rounds, at);
    plot.rows[0].bars.push_back({from, stop, BarKind::kRunning, failed,
                                 fmt::format("round {}: {} on {}", round.id.number, Counted(round.world_size, "worker"),
                                             Counted(round.nodes, "node"))});
    if (!round.stopping) continue;
    const int64_t next = at + 1 < rounds.size() ? begin - Millis(rounds[at + 1].began) : plot.to;
    plot.rows[0].bars.push_back(
        {stop, next, BarKind::kLost, false, fmt::format("lost after round {}", round.id.number)});
  }
  return PanelContent("Rounds", TimelineHtml(plot) + RoundsTable(rounds));
}

std::string LookCloserSection(const LiveFacts& facts, const LiveOptions& options) {
  std::vector<Command> commands;
  if (!options.kube_namespace.empty()) {
    if (const auto worker = WorkerToAsk(facts)) {
      commands.push_back({fmt::format("What rank {} is doing now:", worker->rank), StacksCommand(*worker, options)});
    }
    size_t told = 0;
    for (const StatusLine& node : facts.view.report.nodes) {
      if (node.host.empty() || told++ == kMostPods) break;
      commands.push_back({fmt::format("The output of {}:", node.node), LogsCommand(node.host, options)});
    }
  }
  if (!options.log_dir.empty()) {
    commands.push_back(
        {"A page about the run that stays, also after its end:", "muster report " + ShellWord(options.log_dir)});
  }
  return PanelContent("Look closer", Commands(commands));
}

std::string AboutSection(const LiveFacts& facts, const LiveOptions& options) {
  const LiveView& view = facts.view;
  const Fact all[] = {{"Job", view.job},
                      {"Run", view.report.run_id},
                      {"Last change", Abbreviated(view.report.reason, kLongestReason)},
                      {"Nodes", fmt::format("{} to {}", view.report.min_nodes, view.report.max_nodes)},
                      {"Told by", view.source},
                      {"Machine", options.machine},
                      {"Muster", view.version},
                      {"Logs", options.log_dir}};
  return PanelContent("About", Facts(all));
}

}  // namespace muster::agent

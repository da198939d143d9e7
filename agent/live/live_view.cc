// SPDX-License-Identifier: Apache-2.0
#include "agent/live/live_view.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <numeric>

#include "agent/report/report_text.h"
#include "agent/watch/status_text.h"
#include "base/exit_codes.h"
#include "base/text.h"
#include "base/utf8.h"

namespace muster::agent {
namespace {

using rendezvous::RankTelemetry;
using rendezvous::StatusLine;
using rendezvous::StatusReport;

constexpr size_t kMostWarnings = 20;
constexpr size_t kLongestQuote = 300;

int64_t Millis(Duration duration) { return std::chrono::round<std::chrono::milliseconds>(duration).count(); }

struct RankPace {
  int rank = 0;
  const StatusLine* node = nullptr;
  const RankTelemetry* told = nullptr;
};

// The living ranks with the round's telemetry, in the order of the report.
std::vector<RankPace> RanksOf(const StatusReport& report) {
  std::vector<RankPace> ranks;
  const std::vector<std::optional<int>> first = FirstRanks(report.nodes);
  for (size_t at = 0; at < report.nodes.size(); ++at) {
    const StatusLine& line = report.nodes[at];
    if (!first[at] || !line.telemetry || line.telemetry->round != report.round) continue;
    for (const RankTelemetry& told : line.telemetry->ranks) {
      ranks.push_back({*first[at] + told.local_rank, &line, &told});
    }
  }
  return ranks;
}

Duration MedianOf(std::vector<Duration> times) {
  const auto middle = times.begin() + static_cast<std::ptrdiff_t>(times.size() / 2);
  std::nth_element(times.begin(), middle, times.end());
  return *middle;
}

std::optional<LivePace::Slow> SlowestOf(const std::vector<RankPace>& paced) {
  if (paced.size() < kFewestRanks) return std::nullopt;
  const auto slowest = std::max_element(paced.begin(), paced.end(), [](const RankPace& a, const RankPace& b) {
    return *a.told->step_time < *b.told->step_time;
  });
  std::vector<Duration> others;
  for (const RankPace& rank : paced) {
    if (rank.rank != slowest->rank) others.push_back(*rank.told->step_time);
  }
  const Duration median = MedianOf(std::move(others));
  const Duration longest = *slowest->told->step_time;
  if (longest < std::chrono::duration_cast<Duration>(median * kSlowFactor)) return std::nullopt;
  return LivePace::Slow{slowest->rank, slowest->node->node, longest, median};
}

int SeatedNodes(const StatusReport& report) {
  return static_cast<int>(std::count_if(report.nodes.begin(), report.nodes.end(), [](auto& n) { return !!n.rank; }));
}

int NodesThatAre(const StatusReport& report, std::string_view state) {
  return static_cast<int>(
      std::count_if(report.nodes.begin(), report.nodes.end(), [&](auto& n) { return n.state == state; }));
}

std::string WorkersOf(const StatusReport& report) {
  int64_t workers = 0;
  for (const StatusLine& line : report.nodes) workers += line.rank ? line.slots : 0;
  return fmt::format("{} on {}", Counted(workers, "worker"), Counted(SeatedNodes(report), "node"));
}

std::string BecauseOf(const StatusReport& report) { return report.reason.empty() ? "" : ": " + report.reason; }

void Add(std::vector<LiveWarning>& warnings, LiveWarning::Kind kind, std::string text) {
  if (warnings.size() < kMostWarnings) warnings.push_back({kind, std::move(text)});
}

// "worker rank 2 on node-1 ended: exit code 1: ValueError: no data"
std::string FailureText(const WorkerFailure& failure) {
  const std::string line = OwnLine(failure);
  return fmt::format("{} on {} ended: {}{}{}", WhoFailed(failure), failure.node,
                     DescribeEnd(failure.exit_code, failure.signal), line.empty() ? "" : ": ",
                     Abbreviated(line, kLongestQuote));
}

}  // namespace

LivePace PaceOf(const StatusReport& report) {
  LivePace pace;
  std::vector<RankPace> paced;
  std::vector<Duration> times;
  for (const RankPace& rank : RanksOf(report)) {
    const RankTelemetry& told = *rank.told;
    if (told.position && (!pace.position || *told.position > *pace.position)) {
      pace.position = told.position;
      pace.end = told.end;
      pace.epoch = told.epoch;
      pace.loss = told.loss;
      pace.in_epochs = told.in_epochs;
    }
    if (told.position) pace.behind = std::min(pace.behind.value_or(*told.position), *told.position);
    if (told.exit_code || !told.step_time) continue;
    paced.push_back(rank);
    times.push_back(*told.step_time);
    if (!told.end || !told.position || *told.end < *told.position) continue;
    const double left = (*told.end - *told.position) * std::chrono::duration<double>(*told.step_time).count();
    if (left > std::chrono::duration<double>(Duration::max()).count() / 2) continue;
    const auto duration = std::chrono::duration_cast<Duration>(std::chrono::duration<double>(left));
    pace.left = std::max(pace.left.value_or(Duration{}), duration);
  }
  if (!times.empty()) pace.step_time = MedianOf(std::move(times));
  pace.slow = SlowestOf(paced);
  return pace;
}

LiveTime TimeOf(const StatusReport& report) {
  LiveTime time;
  for (const StatusLine& line : report.nodes) {
    if (!line.telemetry || line.telemetry->seconds.empty()) continue;
    for (size_t use = 0; use < kTimeUses; ++use) {
      const auto told = line.telemetry->seconds.find(std::string(TimeUseName(static_cast<TimeUse>(use))));
      const double seconds = told == line.telemetry->seconds.end() ? 0 : std::clamp(told->second, 0.0, 1e9);
      time.spent[use] = std::chrono::duration_cast<Duration>(std::chrono::duration<double>(seconds));
    }
    time.goodput = GoodputOf(time.spent);
    return time;
  }
  return time;
}

std::string TimeSentence(const TimeSpent& spent) {
  const Duration total = TotalOf(spent);
  if (total <= Duration{}) return "";
  std::vector<std::pair<Duration, TimeUse>> lost;
  for (size_t use = 0; use < kTimeUses; ++use) {
    const auto which = static_cast<TimeUse>(use);
    if (which != TimeUse::kTraining && spent[use] > total / 1000) lost.emplace_back(spent[use], which);
  }
  std::sort(lost.rbegin(), lost.rend());
  std::vector<std::string> parts;
  for (const auto& [time, use] : lost)
    parts.push_back(fmt::format("{} {}", TimeUseName(use), FormatSpan(Millis(time))));
  const Duration trained = spent[static_cast<size_t>(TimeUse::kTraining)];
  return fmt::format("goodput {:.1f} %: trained for {} of {}{}{}",
                     100.0 * static_cast<double>(trained.count()) / static_cast<double>(total.count()),
                     FormatSpan(Millis(trained)), FormatSpan(Millis(total)),
                     parts.empty() ? "" : "; lost: ", Join(parts, ", "));
}

std::string Sentence(const LiveView& view) {
  const StatusReport& report = view.report;
  if (report.phase == "finished") return "Ended" + BecauseOf(report);
  if (report.phase == "gathering") {
    const int here = NodesThatAre(report, "waiting") + NodesThatAre(report, "preparing");
    const std::string wanted = report.max_nodes > report.min_nodes
                                   ? fmt::format("{} to {}", report.min_nodes, report.max_nodes)
                                   : std::to_string(report.max_nodes);
    return fmt::format("Waiting for {} round: {} of {} nodes are here{}", report.round.number < 0 ? "the first" : "a",
                       here, wanted, BecauseOf(report));
  }
  if (report.phase == "stopping" || report.phase == "re-forming") return "Restarting" + BecauseOf(report);
  std::string since;
  if (!report.rounds.empty()) since = fmt::format(", for {}", FormatSpan(Millis(report.rounds.back().began)));
  if (const int done = NodesThatAre(report, "succeeded"); done > 0) {
    return fmt::format("Ending: {} of {} have succeeded", done, Counted(SeatedNodes(report), "node"));
  }
  const char* does = PaceOf(report).position ? "Training" : "Running";
  return fmt::format("{}: {}, in round {}{}", does, WorkersOf(report), report.round.number, since);
}

std::vector<LiveWarning> WarningsOf(const LiveView& view) {
  const StatusReport& report = view.report;
  std::vector<LiveWarning> warnings;
  for (const RankPace& rank : RanksOf(report)) {
    const int code = rank.told->exit_code.value_or(0);
    if (code == 0) continue;
    Add(warnings, LiveWarning::Kind::kFailure,
        fmt::format("rank {} on {} ended: {}", rank.rank, rank.node->node, DescribeExit(code)));
  }
  if (report.overcome && report.phase != "running") {
    Add(warnings, LiveWarning::Kind::kFailure,
        fmt::format("restart {} of {}: {}", report.restart_count, report.max_restarts, FailureText(*report.overcome)));
  }
  if (report.cut_off) {
    Add(warnings, LiveWarning::Kind::kLost,
        "more than half of the nodes fell silent: this side may be the one that is cut off");
  }
  for (const rendezvous::LostNode& lost : report.lost) {
    Add(warnings, LiveWarning::Kind::kLost,
        fmt::format("node {} was lost {} ago: {}", lost.node, FormatSpan(Millis(lost.lost)),
                    lost.closed ? "its connection closed" : "it fell silent"));
  }
  for (const StatusLine& line : report.nodes) {
    if (report.heartbeat_timeout > Duration{} && line.last_heard > report.heartbeat_timeout / 2) {
      Add(warnings, LiveWarning::Kind::kSilent,
          fmt::format("node {} was last heard {} ago; after {} it counts as lost", line.node,
                      FormatSpan(Millis(line.last_heard)), FormatSpan(Millis(report.heartbeat_timeout))));
    }
    if (!line.remark.empty()) {
      Add(warnings, LiveWarning::Kind::kSlow, fmt::format("node {} is {}", line.node, line.remark));
    }
  }
  if (const auto slow = PaceOf(report).slow) {
    Add(warnings, LiveWarning::Kind::kSlow,
        fmt::format("rank {} on {} is slow: {} a step, the others {}", slow->rank, slow->node,
                    FormatSeconds(std::chrono::duration<double>(slow->step_time).count()),
                    FormatSeconds(std::chrono::duration<double>(slow->others).count())));
  }
  if (report.overcome && report.phase == "running") {
    Add(warnings, LiveWarning::Kind::kOvercome,
        fmt::format("overcome by restart {} of {}: {}", report.restart_count, report.max_restarts,
                    FailureText(*report.overcome)));
  }
  return warnings;
}

}  // namespace muster::agent

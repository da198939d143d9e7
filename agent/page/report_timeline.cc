// SPDX-License-Identifier: Apache-2.0
#include "agent/page/report_timeline.h"

#include <algorithm>
#include <array>
#include <map>
#include <set>

#include "agent/page/timeline_plot.h"
#include "agent/report/report_text.h"
#include "base/exit_codes.h"
#include "base/text.h"

namespace muster::agent {
namespace {

struct NodeTrack {
  std::string name;
  std::vector<std::pair<const AttemptSummary*, const AttemptFile*>> attempts;
  int slots = 0;
  bool failed = false;
};

BarKind KindOf(WorkerEnd end) {
  constexpr std::array<BarKind, 5> kKinds = {BarKind::kSucceeded, BarKind::kStopped, BarKind::kNotRecorded,
                                             BarKind::kRetryable, BarKind::kFatal};
  return kKinds[static_cast<size_t>(end)];
}

std::vector<NodeTrack> Tracks(std::span<const AttemptSummary> attempts) {
  std::vector<NodeTrack> tracks;
  std::map<std::string_view, size_t> places;
  for (const AttemptSummary& attempt : attempts) {
    for (const AttemptFile* file : attempt.nodes) {
      const rendezvous::Node& node = file->record.assignment.seat.node;
      auto [place, is_new] = places.try_emplace(node.name, tracks.size());
      if (is_new) tracks.push_back({.name = node.name, .attempts = {}});
      NodeTrack& track = tracks[place->second];
      track.attempts.emplace_back(&attempt, file);
      track.slots = std::max(track.slots, node.slots);
    }
    for (const FailedWorker& failed : attempt.failures) {
      tracks[places[failed.file->record.assignment.seat.node.name]].failed |= !failed.consequence;
    }
  }
  return tracks;
}

// Records are in the order of local ranks.
const launcher::ExitRecord* ExitOf(const AttemptRecord& record, int local_rank) {
  auto found = std::lower_bound(record.exits.begin(), record.exits.end(), local_rank,
                                [](const launcher::ExitRecord& exit, int rank) { return exit.local_rank < rank; });
  return found != record.exits.end() && found->local_rank == local_rank ? &*found : nullptr;
}

bool FailedFirst(const AttemptSummary& attempt, const launcher::ExitRecord* exit) {
  const FailedWorker* root = attempt.RootCause();
  return exit != nullptr && root != nullptr && root->exit == exit;
}

std::string WhatBecame(const launcher::ExitRecord* exit, WorkerEnd end) {
  if (exit == nullptr) return "no end recorded";
  if (end == WorkerEnd::kStopped) return fmt::format("stopped ({})", DescribeWorkerExit(*exit));
  return fmt::format("{} ({})", DescribeWorkerExit(*exit), ExitClassName(Classify(exit->exit_code)));
}

PlotBar WorkerBar(const AttemptSummary& attempt, const AttemptRecord& record, int local_rank) {
  const launcher::ExitRecord* exit = ExitOf(record, local_rank);
  const WorkerEnd end = EndOf(exit, attempt.consequences.contains(exit));
  PlotBar bar;
  bar.kind = KindOf(end);
  bar.crossed = FailedFirst(attempt, exit);
  bar.from = record.workers_started_unix_ms.value_or(record.started_unix_ms);
  int64_t known = exit != nullptr && exit->ended_unix_millis > 0 ? exit->ended_unix_millis
                                                                 : record.ended_unix_ms.value_or(attempt.ended);
  bar.to = std::max(bar.from, known);
  if (!record.workers_started_unix_ms && exit == nullptr) {
    bar.title = fmt::format("attempt {}: called off before its workers ran", attempt.number);
    return bar;
  }
  bar.title = fmt::format("rank {}, attempt {}: {}, {}", record.assignment.seat.first_rank + local_rank, attempt.number,
                          WhatBecame(exit, end), FormatSpan(bar.to - bar.from));
  return bar;
}

// One bar for all workers of a node: as long as the longest, coloured as the worst.
PlotBar NodeBar(const AttemptSummary& attempt, const AttemptRecord& record) {
  PlotBar whole;
  for (int local_rank = 0; local_rank < record.assignment.seat.node.slots; ++local_rank) {
    PlotBar bar = WorkerBar(attempt, record, local_rank);
    const int64_t from = local_rank == 0 ? bar.from : std::min(whole.from, bar.from);
    const int64_t to = std::max(whole.to, bar.to);
    const bool worse = local_rank == 0 || bar.crossed || (bar.kind > whole.kind && !whole.crossed);
    if (worse) whole = std::move(bar);
    whole.from = from;
    whole.to = to;
  }
  return whole;
}

// "rank 5" if the worker always had that rank, else "local rank 1".
std::string WorkerLabel(const NodeTrack& track, int local_rank) {
  std::set<int> ranks;
  for (const auto& [attempt, file] : track.attempts) ranks.insert(file->record.assignment.seat.first_rank + local_rank);
  return ranks.size() == 1 ? fmt::format("rank {}", *ranks.begin()) : fmt::format("local rank {}", local_rank);
}

PlotRow NodeRow(const NodeTrack& track) {
  PlotRow row{.label = track.name, .is_node = true, .bars = {}};
  for (const auto& [attempt, file] : track.attempts) {
    if (file->record.assignment.seat.node.slots > 0) row.bars.push_back(NodeBar(*attempt, file->record));
  }
  return row;
}

void AddWorkerRows(const NodeTrack& track, std::vector<PlotRow>& rows) {
  rows.push_back({.label = track.name, .is_node = true, .bars = {}});
  for (int local_rank = 0; local_rank < track.slots; ++local_rank) {
    PlotRow row{.label = WorkerLabel(track, local_rank), .bars = {}};
    for (const auto& [attempt, file] : track.attempts) {
      if (local_rank < file->record.assignment.seat.node.slots) {
        row.bars.push_back(WorkerBar(*attempt, file->record, local_rank));
      }
    }
    rows.push_back(std::move(row));
  }
}

// The row of the whole job: it runs, or it loses time.
PlotRow JobRow(std::span<const AttemptSummary> attempts) {
  PlotRow row{.label = "job", .is_node = true, .bars = {}};
  for (const AttemptSummary& attempt : attempts) {
    const int64_t stop = attempt.stopping.value_or(attempt.ended);
    if (attempt.workers_started) {
      row.bars.push_back(
          {*attempt.workers_started, std::max(stop, *attempt.workers_started), BarKind::kRunning, false,
           fmt::format("attempt {}: all {} ran for {}", attempt.number, Counted(attempt.world_size, "worker"),
                       FormatSpan(stop - *attempt.workers_started))});
    }
    if (attempt.lost) {
      row.bars.push_back({stop, stop + *attempt.lost, BarKind::kLost, false,
                          fmt::format("{} lost after attempt {}", FormatSpan(*attempt.lost), attempt.number)});
    }
  }
  return row;
}

}  // namespace

std::string Timeline(std::span<const AttemptSummary> attempts, const TimelineLimits& limits) {
  std::vector<NodeTrack> tracks = Tracks(attempts);
  size_t workers = 0;
  for (const NodeTrack& track : tracks) workers += static_cast<size_t>(track.slots);
  bool folded = workers > limits.worker_rows || workers * attempts.size() > limits.bars;
  size_t room = std::clamp<size_t>(limits.bars / std::max<size_t>(attempts.size(), 1), 1, limits.node_rows);
  size_t left_out = 0;
  if (folded && tracks.size() > room) {
    left_out = tracks.size() - room;
    std::vector<NodeTrack> kept;
    size_t quiet =
        room - std::min<size_t>(room, std::count_if(tracks.begin(), tracks.end(), [](auto& t) { return t.failed; }));
    for (NodeTrack& track : tracks) {
      if (kept.size() == room) break;
      if (track.failed || quiet > 0) {
        if (!track.failed) --quiet;
        kept.push_back(std::move(track));
      }
    }
    tracks = std::move(kept);
  }
  std::vector<PlotRow> rows = {JobRow(attempts)};
  for (const NodeTrack& track : tracks) {
    if (folded) {
      rows.push_back(NodeRow(track));
    } else {
      AddWorkerRows(track, rows);
    }
  }

  int64_t from = attempts.front().started;
  int64_t to = attempts.front().ended;
  for (const AttemptSummary& attempt : attempts) {
    from = std::min(from, attempt.started);
    to = std::max(to, attempt.ended);
  }
  TimelinePlot plot{.name = "Timeline",
                    .description = fmt::format("{} in {}", Counted(static_cast<int64_t>(rows.size()), "row"),
                                               Counted(static_cast<int64_t>(attempts.size()), "attempt")),
                    .from = from,
                    .to = to,
                    .rows = std::move(rows),
                    .columns = attempts.size(),
                    .crossed = "failed first"};
  std::string html = TimelineHtml(plot);
  std::string notes;
  if (folded) notes += fmt::format("One row a node: there are {}. ", Counted(workers, "worker"));
  if (left_out > 0) notes += fmt::format("{} left out. ", Counted(left_out, "node"));
  if (!notes.empty()) html += fmt::format("<p class=\"muted\">{}</p>\n", notes);
  return html;
}

}  // namespace muster::agent

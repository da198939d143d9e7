#include "agent/report/report_timeline.h"

#include <algorithm>
#include <array>
#include <map>
#include <set>

#include "agent/report/report_text.h"
#include "base/exit_codes.h"
#include "base/text.h"

namespace muster::agent {
namespace {

constexpr int kRowHeight = 20;  // CSS: .labels div
constexpr int kBarHeight = 12;
constexpr int kAxisHeight = 24;

// One bar: a worker, or all workers of a node.
struct Bar {
  int64_t from = 0;
  int64_t to = 0;
  WorkerEnd end = WorkerEnd::kNotRecorded;
  bool failed_first = false;
  std::string title;
};

struct Row {
  std::string label;
  bool is_node = false;  // a heading, or a node with all its workers in one row
  std::vector<Bar> bars;
};

struct NodeTrack {
  std::string name;
  std::vector<std::pair<const AttemptSummary*, const AttemptFile*>> attempts;
  int slots = 0;
  bool failed = false;
};

std::string_view ClassOf(WorkerEnd end) {
  constexpr std::array<std::string_view, 5> kClasses = {"ok", "stopped", "open", "retry", "fatal"};
  return kClasses[static_cast<size_t>(end)];
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

Bar WorkerBar(const AttemptSummary& attempt, const AttemptRecord& record, int local_rank) {
  const launcher::ExitRecord* exit = ExitOf(record, local_rank);
  Bar bar;
  bar.end = EndOf(exit, attempt.consequences.contains(exit));
  bar.failed_first = FailedFirst(attempt, exit);
  bar.from = record.workers_started_unix_ms.value_or(record.started_unix_ms);
  int64_t known = exit != nullptr && exit->ended_unix_millis > 0 ? exit->ended_unix_millis
                                                                 : record.ended_unix_ms.value_or(attempt.ended);
  bar.to = std::max(bar.from, known);
  if (!record.workers_started_unix_ms && exit == nullptr) {
    bar.title = fmt::format("attempt {}: called off before its workers ran", attempt.number);
    return bar;
  }
  bar.title = fmt::format("rank {}, attempt {}: {}, {}", record.assignment.seat.first_rank + local_rank, attempt.number,
                          WhatBecame(exit, bar.end), FormatSpan(bar.to - bar.from));
  return bar;
}

// One bar for all workers of a node: as long as the longest, coloured as the worst.
Bar NodeBar(const AttemptSummary& attempt, const AttemptRecord& record) {
  Bar whole;
  std::string what;
  for (int local_rank = 0; local_rank < record.assignment.seat.node.slots; ++local_rank) {
    Bar bar = WorkerBar(attempt, record, local_rank);
    bool worse = local_rank == 0 || bar.failed_first || (bar.end > whole.end && !whole.failed_first);
    if (worse) {
      whole.end = bar.end;
      what = bar.title;
    }
    whole.failed_first |= bar.failed_first;
    whole.from = local_rank == 0 ? bar.from : std::min(whole.from, bar.from);
    whole.to = std::max(whole.to, bar.to);
  }
  whole.title = std::move(what);
  return whole;
}

// "rank 5" if the worker always had that rank, else "local rank 1".
std::string WorkerLabel(const NodeTrack& track, int local_rank) {
  std::set<int> ranks;
  for (const auto& [attempt, file] : track.attempts) ranks.insert(file->record.assignment.seat.first_rank + local_rank);
  return ranks.size() == 1 ? fmt::format("rank {}", *ranks.begin()) : fmt::format("local rank {}", local_rank);
}

Row NodeRow(const NodeTrack& track) {
  Row row{.label = track.name, .is_node = true, .bars = {}};
  for (const auto& [attempt, file] : track.attempts) {
    if (file->record.assignment.seat.node.slots > 0) row.bars.push_back(NodeBar(*attempt, file->record));
  }
  return row;
}

void AddWorkerRows(const NodeTrack& track, std::vector<Row>& rows) {
  rows.push_back({.label = track.name, .is_node = true, .bars = {}});
  for (int local_rank = 0; local_rank < track.slots; ++local_rank) {
    Row row{.label = WorkerLabel(track, local_rank), .bars = {}};
    for (const auto& [attempt, file] : track.attempts) {
      if (local_rank < file->record.assignment.seat.node.slots) {
        row.bars.push_back(WorkerBar(*attempt, file->record, local_rank));
      }
    }
    rows.push_back(std::move(row));
  }
}

// Times as percentages of the axis.
class Axis {
 public:
  Axis(int64_t from, int64_t to) : from_(from), span_(std::max<int64_t>(to - from, 1)) {}
  int64_t span() const { return span_; }
  double At(int64_t moment) const { return Share(moment - from_); }
  double Share(int64_t millis) const {
    return 100.0 * static_cast<double>(std::clamp<int64_t>(millis, 0, span_)) / static_cast<double>(span_);
  }

 private:
  int64_t from_;
  int64_t span_;
};

std::string AxisSvg(const Axis& axis) {
  std::string svg = fmt::format("<svg class=\"axis\" width=\"100%\" height=\"{}\" aria-hidden=\"true\">", kAxisHeight);
  for (int64_t tick : AxisTicks(axis.span(), 5)) {
    double at = axis.Share(tick);
    std::string_view anchor = tick == 0 ? "start" : at > 90 ? "end" : "middle";
    svg += fmt::format("<text x=\"{:.3g}%\" y=\"15\" text-anchor=\"{}\">{}</text>", at, anchor, FormatTick(tick));
  }
  return svg + "</svg>";
}

std::string Rect(std::string_view css, double x, double width, int y, int height, std::string_view title) {
  return fmt::format(
      "<rect class=\"{}\" x=\"{:.3f}%\" y=\"{}\" width=\"{:.3f}%\" height=\"{}\" rx=\"2\"><title>{}</title></rect>\n",
      css, x, y, width, height, EscapeHtml(title));
}

std::string BarSvg(const Axis& axis, const Bar& bar, int top) {
  double from = axis.At(bar.from);
  double to = axis.At(bar.to);
  int y = top + (kRowHeight - kBarHeight) / 2;
  std::string svg = Rect(ClassOf(bar.end), from, to - from, y, kBarHeight, bar.title);
  // Also a cross, so that the first failure can be seen without colours: at the end of its bar, or over a short bar.
  if (bar.failed_first) {
    bool is_long = to - from > 3;
    svg += fmt::format("<text class=\"cross {}\" x=\"{:.3f}%\" y=\"{}\" dx=\"{}\">\u00D7</text>", ClassOf(bar.end),
                       is_long ? to : (from + to) / 2, top + 15, is_long ? -7 : 0);
  }
  return svg;
}

// The row of the whole job: it runs, or it loses time.
std::string JobSvg(const Axis& axis, std::span<const AttemptSummary> attempts) {
  std::string svg;
  int y = (kRowHeight - kBarHeight) / 2;
  for (const AttemptSummary& attempt : attempts) {
    int64_t stop = attempt.stopping.value_or(attempt.ended);
    if (attempt.workers_started) {
      double from = axis.At(*attempt.workers_started);
      svg += Rect("run", from, std::max(0.0, axis.At(stop) - from), y, kBarHeight,
                  fmt::format("attempt {}: all {} ran for {}", attempt.number, Counted(attempt.world_size, "worker"),
                              FormatSpan(stop - *attempt.workers_started)));
    }
    if (attempt.lost) {
      svg += Rect("lost", axis.At(stop), axis.Share(*attempt.lost), y, kBarHeight,
                  fmt::format("{} lost after attempt {}", FormatSpan(*attempt.lost), attempt.number));
    }
  }
  return svg;
}

std::string LabelHtml(const Row& row) {
  std::string text = EscapeHtml(row.label);
  return fmt::format("<div{0} title=\"{1}\">{1}</div>", row.is_node ? " class=\"node\"" : "", text);
}

std::string Legend(const std::vector<Row>& rows, bool lost) {
  struct Entry {
    WorkerEnd end;
    std::string_view text;
  };
  constexpr Entry kEntries[] = {{WorkerEnd::kSucceeded, "succeeded"},
                                {WorkerEnd::kRetryable, "failed, retryable"},
                                {WorkerEnd::kFatal, "failed, fatal"},
                                {WorkerEnd::kStopped, "stopped because of another"},
                                {WorkerEnd::kNotRecorded, "no end recorded"}};
  std::set<WorkerEnd> seen;
  bool crossed = false;
  for (const Row& row : rows) {
    for (const Bar& bar : row.bars) {
      seen.insert(bar.end);
      crossed |= bar.failed_first;
    }
  }
  std::string html = "<ul class=\"legend\">";
  auto entry = [&](std::string_view css, std::string_view text) {
    html += fmt::format("<li><i class=\"{}\"></i>{}</li>", css, text);
  };
  for (const Entry& e : kEntries) {
    if (seen.contains(e.end)) entry(ClassOf(e.end), e.text);
  }
  entry("run", "job: all workers run");
  if (lost) entry("lost", "job: time lost");
  if (crossed) html += "<li><b class=\"cross\">\u00D7</b>failed first</li>";
  return html + "</ul>";
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
  std::vector<Row> rows;
  for (const NodeTrack& track : tracks) {
    if (folded) {
      rows.push_back(NodeRow(track));
    } else {
      AddWorkerRows(track, rows);
    }
  }

  int64_t from = attempts.front().started;
  int64_t to = attempts.front().ended;
  bool lost = false;
  for (const AttemptSummary& attempt : attempts) {
    from = std::min(from, attempt.started);
    to = std::max(to, attempt.ended);
    lost |= attempt.lost.value_or(0) > 0;
  }
  Axis axis(from, to);
  int height = kRowHeight * static_cast<int>(rows.size() + 1);
  std::string labels = "<div class=\"node\">job</div>";
  std::string bars = JobSvg(axis, attempts);
  std::string grid;
  for (int64_t tick : AxisTicks(axis.span(), 5)) {
    grid += fmt::format("<line class=\"grid\" x1=\"{0:.3f}%\" x2=\"{0:.3f}%\" y1=\"0\" y2=\"{1}\"/>", axis.Share(tick),
                        height);
  }
  int top = kRowHeight;
  for (const Row& row : rows) {
    labels += LabelHtml(row);
    for (const Bar& bar : row.bars) bars += BarSvg(axis, bar, top);
    top += kRowHeight;
  }
  std::string html = fmt::format(
      "<div class=\"scroll\" tabindex=\"0\" role=\"region\" aria-label=\"Timeline\">\n"
      "<div class=\"plot\" style=\"min-width:{}px\"><div class=\"corner\">time</div>{}<div class=\"labels\">{}</div>\n"
      "<svg class=\"bars\" width=\"100%\" height=\"{}\" role=\"img\" aria-label=\"{} in "
      "{}\">{}\n{}</svg></div></div>\n{}\n",
      std::min<size_t>(120 + 14 * attempts.size(), 3000), AxisSvg(axis), labels, height, Counted(rows.size(), "row"),
      Counted(attempts.size(), "attempt"), grid, bars, Legend(rows, lost));
  std::string notes;
  if (folded) notes += fmt::format("One row a node: there are {}. ", Counted(workers, "worker"));
  if (left_out > 0) notes += fmt::format("{} left out. ", Counted(left_out, "node"));
  if (!notes.empty()) html += fmt::format("<p class=\"muted\">{}</p>\n", notes);
  return html;
}

}  // namespace muster::agent

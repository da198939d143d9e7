// SPDX-License-Identifier: Apache-2.0
#include "agent/live/top_rows.h"

#include <algorithm>
#include <cmath>

#include "agent/live/top_text.h"
#include "agent/watch/status_text.h"
#include "base/text.h"

namespace muster::agent {

using rendezvous::LostNode;
using rendezvous::RankTelemetry;
using rendezvous::StatusLine;

namespace {

std::string StateOf(const StatusLine& node, const RankTelemetry& worker) {
  if (!worker.exit_code) return node.state;
  return *worker.exit_code == 0 ? "done" : fmt::format("exit {}", *worker.exit_code);
}

TopRow RowOf(const StatusLine& node, const RankTelemetry& worker, std::optional<int64_t> first_rank) {
  TopRow row{.node = &node, .worker = &worker, .state = StateOf(node, worker)};
  if (first_rank) row.rank = *first_rank + worker.local_rank;
  row.failed = worker.exit_code.value_or(0) != 0;
  row.cpus = worker.cpus;
  row.memory_bytes = worker.memory_bytes;
  row.gpu_share = worker.gpu_share;
  row.gpu_memory_bytes = worker.gpu_memory_bytes;
  row.position = worker.position;
  row.step_time = worker.step_time;
  row.silent = worker.silent;
  row.last_line = worker.last_line;
  return row;
}

template <class Value>
void Raise(const std::optional<Value>& value, std::optional<Value>* most) {
  if (value && (!*most || **most < *value)) *most = value;
}

TopRow RowOf(const StatusLine& node, std::optional<int64_t> first_rank) {
  TopRow row{.node = &node, .workers = node.slots, .rank = first_rank, .state = node.state};
  if (!node.telemetry || node.telemetry->ranks.empty()) return row;
  const std::vector<RankTelemetry>& workers = node.telemetry->ranks;
  row.workers = static_cast<int>(workers.size());
  double cpus = 0, share = 0;
  int64_t memory = 0;
  int shares = 0;
  std::optional<Duration> newest;
  for (const RankTelemetry& worker : workers) {
    cpus += worker.cpus;
    memory += worker.memory_bytes;
    if (worker.gpu_share) {
      share += *worker.gpu_share;
      ++shares;
    }
    if (worker.gpu_memory_bytes) row.gpu_memory_bytes = row.gpu_memory_bytes.value_or(0) + *worker.gpu_memory_bytes;
    Raise(worker.position, &row.position);
    Raise(worker.step_time, &row.step_time);
    Raise(worker.silent, &row.silent);
    if (worker.silent && (!newest || *worker.silent < *newest)) {
      newest = worker.silent;
      row.last_line = worker.last_line;
    }
    row.failed = row.failed || worker.exit_code.value_or(0) != 0;
  }
  row.cpus = cpus;
  row.memory_bytes = memory;
  if (shares > 0) row.gpu_share = share / shares;
  return row;
}

TopRow RowOf(const LostNode& lost) {
  return {.lost = &lost,
          .workers = 0,
          .state = "lost",
          .last_line = lost.closed ? "its connection closed" : "it fell silent"};
}

bool IsShown(const TopRow& row, std::string_view lower_filter) {
  if (lower_filter.empty()) return true;
  const std::string_view host = row.node != nullptr ? row.node->host : row.lost->host;
  for (const std::string_view text :
       {std::string_view(row.NodeName()), host, std::string_view(row.state), row.last_line}) {
    if (HasPart(text, lower_filter)) return true;
  }
  return false;
}

std::optional<double> SortedBy(const TopRow& row, TopSort sort) {
  const auto seconds = [](const std::optional<Duration>& span) {
    return span ? std::optional(std::chrono::duration<double>(*span).count()) : std::nullopt;
  };
  switch (sort) {
    case TopSort::kRank:
      return row.rank ? std::optional(-static_cast<double>(*row.rank)) : std::nullopt;  // the lowest first
    case TopSort::kCpu:
      return row.cpus;
    case TopSort::kMemory:
      return row.memory_bytes ? std::optional(static_cast<double>(*row.memory_bytes)) : std::nullopt;
    case TopSort::kStepTime:
      return seconds(row.step_time);
    case TopSort::kSilent:
      return seconds(row.silent);
  }
  return std::nullopt;
}

void Sort(const TopChoice& choice, std::vector<TopRow>* rows) {
  struct Place {
    std::optional<double> value;
    size_t at;
  };
  std::vector<Place> places;
  for (size_t at = 0; at < rows->size(); ++at) {
    std::optional<double> value = SortedBy((*rows)[at], choice.sort);
    if (value && std::isnan(*value)) value.reset();
    if (value && choice.reverse) value = -*value;
    places.push_back({value, at});
  }
  std::sort(places.begin(), places.end(), [](const Place& a, const Place& b) {
    if (a.value && b.value && *a.value != *b.value) return *a.value > *b.value;
    if (a.value.has_value() != b.value.has_value()) return a.value.has_value();
    return a.at < b.at;
  });
  std::vector<TopRow> sorted;
  for (const Place& place : places) sorted.push_back(std::move((*rows)[place.at]));
  *rows = std::move(sorted);
}

}  // namespace

std::string_view TopSortName(TopSort sort) {
  switch (sort) {
    case TopSort::kRank:
      return "rank";
    case TopSort::kCpu:
      return "cpu";
    case TopSort::kMemory:
      return "memory";
    case TopSort::kStepTime:
      return "step time";
    case TopSort::kSilent:
      return "silent";
  }
  return "rank";
}

const std::string& TopRow::NodeName() const { return node != nullptr ? node->node : lost->node; }
TopRowName TopRow::Name() const { return {NodeName(), worker != nullptr ? worker->local_rank : -1}; }
Duration TopRow::last_heard() const { return node != nullptr ? node->last_heard : lost->last_heard; }

std::vector<TopRow> RowsOf(const LiveView& view, const TopChoice& choice) {
  const std::string filter = Lower(choice.filter);
  std::vector<TopRow> rows;
  const auto add = [&](TopRow row) {
    if (IsShown(row, filter)) rows.push_back(std::move(row));
  };
  const std::vector<StatusLine>& nodes = view.report.nodes;
  const std::vector<std::optional<int>> first = FirstRanks(nodes);
  for (size_t at = 0; at < nodes.size(); ++at) {
    const bool alone = choice.folded || !nodes[at].telemetry || nodes[at].telemetry->ranks.empty();
    if (alone) {
      add(RowOf(nodes[at], first[at]));
      continue;
    }
    for (const RankTelemetry& worker : nodes[at].telemetry->ranks) add(RowOf(nodes[at], worker, first[at]));
  }
  for (const LostNode& lost : view.report.lost) add(RowOf(lost));
  Sort(choice, &rows);
  return rows;
}

bool TellsGpus(const LiveView& view) {
  for (const StatusLine& node : view.report.nodes) {
    if (!node.telemetry) continue;
    for (const RankTelemetry& worker : node.telemetry->ranks) {
      if (worker.gpu_share || worker.gpu_memory_bytes) return true;
    }
  }
  return false;
}

}  // namespace muster::agent

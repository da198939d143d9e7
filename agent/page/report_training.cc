// SPDX-License-Identifier: Apache-2.0
#include "agent/page/report_training.h"

#include <algorithm>

#include "agent/live/live_view.h"
#include "agent/report/report_text.h"
#include "base/text.h"

namespace muster::agent {
namespace {

// The curve of the node whose curve reaches furthest.
const std::vector<rendezvous::CurvePoint>* CurveOf(const AttemptSummary& attempt) {
  const std::vector<rendezvous::CurvePoint>* longest = nullptr;
  for (const AttemptFile* file : attempt.nodes) {
    const auto& curve = file->record.curve;
    if (curve.empty() || (longest != nullptr && longest->back().position >= curve.back().position)) continue;
    longest = &curve;
  }
  return longest;
}

// In the order of ranks, since nodes and records are.
HeatMap HeatOf(const AttemptSummary& attempt) {
  HeatMap map;
  for (const AttemptFile* file : attempt.nodes) {
    const rendezvous::Seat& seat = file->record.assignment.seat;
    map.slots = std::max(map.slots, seat.node.slots);
    for (const RankTraining& rank : file->record.training) {
      HeatCell cell{seat.first_rank + rank.local_rank, seat.node.name, std::nullopt};
      if (rank.step_time) cell.seconds = std::chrono::duration<double>(*rank.step_time).count();
      map.cells.push_back(std::move(cell));
    }
  }
  return map;
}

// As LivePace::Slow says it of a run that goes on.
void MarkSlowest(HeatMap& map) {
  std::vector<std::pair<double, int>> order;
  for (size_t at = 0; at < map.cells.size(); ++at) {
    if (map.cells[at].seconds) order.emplace_back(*map.cells[at].seconds, static_cast<int>(at));
  }
  if (order.size() < kFewestRanks) return;
  std::sort(order.begin(), order.end());
  const HeatCell* slowest = &map.cells[static_cast<size_t>(order.back().second)];
  order.pop_back();
  const double median = order[order.size() / 2].first;
  if (*slowest->seconds < kSlowFactor * median) return;
  map.slow = slowest->rank;
  map.evidence = fmt::format("Rank {} on {} was slower than the others: {} a step, the others {}.", slowest->rank,
                             slowest->node, FormatSeconds(*slowest->seconds), FormatSeconds(median));
}

const RankTraining* FurthestOf(const AttemptSummary& attempt) {
  const RankTraining* furthest = nullptr;
  for (const AttemptFile* file : attempt.nodes) {
    for (const RankTraining& rank : file->record.training) {
      if (furthest == nullptr || rank.position > furthest->position) furthest = &rank;
    }
  }
  return furthest;
}

}  // namespace

RunTraining TrainingOf(const RunSummary& run) {
  RunTraining training;
  for (const AttemptSummary& attempt : run.attempts) {
    if (const auto* curve = CurveOf(attempt)) {
      training.curves.push_back({fmt::format("attempt {}", attempt.number), *curve});
    }
    if (const RankTraining* furthest = FurthestOf(attempt)) training.furthest = *furthest;
    if (HeatMap heat = HeatOf(attempt);
        std::any_of(heat.cells.begin(), heat.cells.end(), [](auto& cell) { return cell.seconds.has_value(); })) {
      training.heat = std::move(heat);
    }
    const auto with_ledger = std::find_if(attempt.nodes.begin(), attempt.nodes.end(),
                                          [](const AttemptFile* file) { return file->record.spent.has_value(); });
    if (with_ledger == attempt.nodes.end()) continue;
    training.spent = (*with_ledger)->record.spent;
    training.spent_node = (*with_ledger)->record.assignment.seat.node.name;
  }
  if (training.furthest) training.in_epochs = training.furthest->in_epochs;
  MarkSlowest(training.heat);
  return training;
}

}  // namespace muster::agent

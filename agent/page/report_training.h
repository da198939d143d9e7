// SPDX-License-Identifier: Apache-2.0
// What the records of a run say about its training: curve, step times, where the time went. Pure.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "agent/page/heat_map.h"
#include "agent/page/loss_curve.h"
#include "agent/report/run_summary.h"

namespace muster::agent {

struct RunTraining {
  std::vector<CurveLine> curves;  // of the attempts that have one, in their order
  bool in_epochs = false;
  HeatMap heat;  // of the newest attempt that tells step times
  // The ledger that covers most of the run: of the newest attempt that has one, of its first node by rank.
  std::optional<TimeSpent> spent;
  std::string spent_node;
  // Of the worker that came furthest in the newest attempt that tells a position.
  std::optional<RankTraining> furthest;
};

RunTraining TrainingOf(const RunSummary& run);

}  // namespace muster::agent

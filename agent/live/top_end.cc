// SPDX-License-Identifier: Apache-2.0
#include "agent/live/top_end.h"

#include <algorithm>

#include "base/text.h"

namespace muster::agent {

using rendezvous::RankTelemetry;
using rendezvous::StatusLine;
using rendezvous::StatusReport;

namespace {

const std::vector<RankTelemetry>* WorkersOf(const StatusLine& node, const StatusReport& report) {
  const bool is_new = node.telemetry && node.telemetry->round == report.round;
  return is_new ? &node.telemetry->ranks : nullptr;
}

bool HasSucceeded(const StatusLine& node, const StatusReport& report) {
  if (node.state == "succeeded") return true;
  const auto* workers = WorkersOf(node, report);
  return workers != nullptr && !workers->empty() && std::cmp_equal(workers->size(), node.slots) &&
         std::all_of(workers->begin(), workers->end(), [](const RankTelemetry& rank) { return rank.exit_code == 0; });
}

bool HasFailed(const RankTelemetry& rank) { return rank.exit_code.value_or(0) != 0; }

}  // namespace

ToldEnd ToldEndOf(const StatusReport& report) {
  if (report.phase != "running" && report.phase != "stopping") return {};
  int seated = 0, succeeded = 0;
  for (const StatusLine& node : report.nodes) {
    if (!node.rank) continue;
    ++seated;
    succeeded += HasSucceeded(node, report) ? 1 : 0;
    const auto* workers = WorkersOf(node, report);
    if (workers == nullptr || std::none_of(workers->begin(), workers->end(), HasFailed)) continue;
    for (const LiveWarning& warning : WarningsOf({.report = report})) {  // the first failure leads them
      if (warning.kind == LiveWarning::Kind::kFailure) return {ToldEnd::Kind::kFailure, warning.text};
    }
  }
  if (seated == 0 || succeeded < seated) return {};
  return {ToldEnd::Kind::kSuccess, "all workers succeeded"};
}

TopNext AfterSilence(const TopSilence& silence, const ToldEnd& told, Duration first_limit) {
  if (!silence.was_heard) return silence.lasts >= first_limit ? TopNext::kNeverHeard : TopNext::kAskAgain;
  if (silence.refuses && silence.is_only) {
    if (told.kind != ToldEnd::Kind::kNothing && silence.lasts >= kToldEndLimit) return TopNext::kEnded;
    if (silence.lasts >= kRefusalLimit) return TopNext::kAgentEnded;
  }
  return silence.lasts >= kSilenceLimit ? TopNext::kLost : TopNext::kAskAgain;
}

LiveView WithAllNodes(LiveView view, const StatusReport& last) {
  if (view.report.phase != "finished" || view.source != "node" || last.nodes.size() <= 1) return view;
  view.report.nodes = last.nodes;
  view.report.rounds = last.rounds;
  view.report.lost = last.lost;
  view.report.overcome = last.overcome;
  view.report.heartbeat_timeout = last.heartbeat_timeout;
  return view;
}

}  // namespace muster::agent

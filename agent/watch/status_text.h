// SPDX-License-Identifier: Apache-2.0
// The facts about a run as text: the output of `muster status` and the answer of /status. Pure.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/run_facts.h"
#include "rendezvous/messages.h"

namespace muster::agent {

// What the answer of /status has beside the report (docs/watching.md); what is empty is left out.
struct StatusAnswer {
  std::string_view source;         // who reported
  std::string_view source_reason;  // why not the coordinator
  std::string_view job;            // "TrainJob digits"
  std::string_view muster;         // version of who answers
  // Of the last attempt on the node that answers.
  std::optional<int> standby_workers;
  std::optional<double> first_output_seconds;
  std::optional<TrainingFacts> training;
  std::optional<RunTime> time;
};

// Differs between two reports if restarts were charged, a node was lost or a lost one is back. It does not depend on
// who reports, nor on times.
std::string VersionOf(const rendezvous::StatusReport& report);

// The global rank of each node's first worker: nodes have their ranks one after the other, in the order of their node
// ranks. nullopt: the node is in no round. At most 2^30, since a node may say that it has any number of slots.
std::vector<std::optional<int>> FirstRanks(const std::vector<rendezvous::StatusLine>& nodes);

// "membership", "preemption", "failure", "success".
std::string_view RoundCauseName(rendezvous::RoundCause cause);

// One JSON object in one line, without line feed (docs/rendezvous.md has the fields; docs/watching.md those of the
// telemetry, if the report has any).
std::string StatusJson(const rendezvous::StatusReport& report, const StatusAnswer& answer = {});

// For people; several lines.
std::string StatusTable(const rendezvous::StatusReport& report);

}  // namespace muster::agent

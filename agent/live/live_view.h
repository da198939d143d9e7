// SPDX-License-Identifier: Apache-2.0
// A run that goes on, as the live page and `muster top` show it: what its coordinator reports with the telemetry of its
// nodes, and what follows from it. Pure.
//
// The same facts as JSON are the answer of /status?ranks=1 (docs/watching.md has the fields). `muster top` reads them
// back from there, so a page and a terminal never tell two stories.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/run_facts.h"
#include "base/status.h"
#include "rendezvous/messages.h"

namespace muster::agent {

struct LiveView {
  rendezvous::StatusReport report;  // with telemetry and rounds
  std::string source;               // "coordinator", or "node": only the node that answers is in the report
  std::string source_reason;        // why not the coordinator
  std::string job;                  // its name: "digits"; empty: not known
  std::string version;              // of the agent that answers
};

// The position of the run, and what its ranks say about the pace. What is not known is empty.
struct LivePace {
  std::optional<double> position, end, epoch, loss;  // of the rank that is furthest
  std::optional<double> behind;                      // position of the rank that is last
  bool in_epochs = false;
  std::optional<Duration> step_time;  // the median over the ranks of their own medians
  std::optional<Duration> left;       // until the end, at the pace of the slowest rank that tells one
  // The rank whose step takes longest, if that is at least kSlowFactor times the median of the others and at least
  // kFewestRanks ranks tell a pace. Ranks that wait for each other in each step all tell the slow one's pace: then no
  // rank is named, and the ones that use the most CPU or the least GPU are no evidence.
  struct Slow {
    int rank = 0;
    std::string node;
    Duration step_time{}, others{};
  };
  std::optional<Slow> slow;
};
inline constexpr double kSlowFactor = 1.25;
inline constexpr size_t kFewestRanks = 3;

LivePace PaceOf(const rendezvous::StatusReport& report);

// Where the run's time went: that of the node with rank 0, else of the first node that tells it. `goodput`: the share
// that trained; nullopt: not known.
struct LiveTime {
  TimeSpent spent{};
  std::optional<double> goodput;
};
LiveTime TimeOf(const rendezvous::StatusReport& report);
// "goodput 83.3 %: trained for 10 min 00 s of 12 min 00 s; lost: restart 1 min 00 s, start 45.0 s, redone 15.0 s", the
// largest loss first; without those below a thousandth. Empty: no time has passed.
std::string TimeSentence(const TimeSpent& spent);

// What the run is doing, in one sentence of plain text: "Training: 64 workers on 8 nodes, in attempt 2 since 12 min",
// "Restarting: rank 3 on node-1 ended with exit code 1 (restart 1 of 3)", "Waiting for the first round: 3 of 4 nodes
// are here".
std::string Sentence(const LiveView& view);

// A failed worker, a slow or lost node, a silent rank: each with its evidence, in one sentence. The worst first, at
// most 20.
struct LiveWarning {
  enum class Kind {
    kFailure,  // it stops the round now
    kLost,     // a node is gone, or this side is cut off
    kSilent,
    kSlow,
    kOvercome,  // a failure that a restart has answered; after all others
  };
  Kind kind = Kind::kFailure;
  std::string text;
};
std::vector<LiveWarning> WarningsOf(const LiveView& view);

// JSON text, one object in one line without line feed: the fields of StatusJson() and `ranks`, `rounds`, `curve`.
std::string ToJson(const LiveView& view);
// The reverse. Ignores unknown fields; what is absent is empty, so the answer of an older agent can be shown, too.
// InvalidArgument names what is wrong. Bounds: those of rendezvous/wire.h.
StatusOr<LiveView> ParseLiveView(std::string_view json);

}  // namespace muster::agent

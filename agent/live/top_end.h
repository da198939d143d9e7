// SPDX-License-Identifier: Apache-2.0
// When `muster top` of an agent ends: what the last answer tells about the run's end, and what silence after it means.
// Pure.
#pragma once

#include <string>

#include "agent/live/live_view.h"

namespace muster::agent {

// What a report tells about the end of a run that is not decided yet.
struct ToldEnd {
  enum class Kind {
    kNothing,
    kSuccess,  // all workers of the round have succeeded
    kFailure,  // a worker of the round has failed
  };
  Kind kind = Kind::kNothing;
  std::string text;  // "all workers succeeded", "rank 3 on node-1 ended: exit code 1"
};
ToldEnd ToldEndOf(const rendezvous::StatusReport& report);

// The last question was not answered.
struct TopSilence {
  bool was_heard = false;  // an answer came before
  bool refuses = false;    // nothing listens at the agent's port
  bool is_only = false;    // no other agent can answer in its place
  Duration lasts{};        // since the last answer, or the beginning
};

enum class TopNext {
  kAskAgain,
  kEnded,       // the run has ended as the last answer told
  kAgentEnded,  // the agent has ended; how the run ended is not known
  kLost,        // nobody has answered for 60 s
  kNeverHeard,  // no first answer came within the limit
};
inline constexpr Duration kToldEndLimit = std::chrono::seconds(3);
inline constexpr Duration kRefusalLimit = std::chrono::seconds(10);  // a container is restarted sooner, at first
inline constexpr Duration kSilenceLimit = std::chrono::seconds(60);  // as StatusInquiry looks for a successor
// `first_limit`: of the first answer.
TopNext AfterSilence(const TopSilence& silence, const ToldEnd& told, Duration first_limit);

// An agent whose coordinator is gone tells the end of the run with itself as the only node. Gives that end to what
// `last` said of all nodes. Other views stay as they are.
LiveView WithAllNodes(LiveView view, const rendezvous::StatusReport& last);

}  // namespace muster::agent

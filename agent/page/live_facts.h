// SPDX-License-Identifier: Apache-2.0
// What the live page shows: a run as its coordinator reports it, and what follows from that (agent/live/live_view.h).
// Passive values.
#pragma once

#include <string>
#include <vector>

#include "agent/live/live_view.h"

namespace muster::agent {

struct LiveFacts {
  LiveView view;
  LivePace pace;
  LiveTime time;
  std::string sentence;
  std::vector<LiveWarning> warnings;
};

LiveFacts FactsOf(LiveView view);

}  // namespace muster::agent

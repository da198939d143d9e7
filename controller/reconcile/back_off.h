// SPDX-License-Identifier: Apache-2.0
// Pauses between retries: exponential back-off. Pure.
#pragma once

#include <algorithm>
#include <chrono>

#include "base/clock.h"

namespace muster::controller {

struct BackOffRules {
  Duration first = std::chrono::milliseconds(500);
  Duration longest = std::chrono::seconds(30);
};

// The pause after `failures` failures in a row (at least 1). It begins with `first` and doubles up to `longest`.
inline Duration BackOff(const BackOffRules& rules, int failures) {
  Duration pause = std::min(rules.first, rules.longest);
  for (int i = 1; i < failures && pause < rules.longest; ++i) pause = std::min(pause * 2, rules.longest);
  return pause;
}

// Returns between a half and the whole of `pause`, by `jitter` in [0, 1), so that not all clients retry at once.
inline Duration Spread(Duration pause, double jitter) {
  return pause / 2 + Duration(static_cast<Duration::rep>(static_cast<double>((pause / 2).count()) * jitter));
}

}  // namespace muster::controller

// SPDX-License-Identifier: Apache-2.0
// What a run has done, as its agent tells it: how far its training is, and where its time went. The agent writes these
// facts into /status, into attempt.json and into the termination message; the controller and `muster` read them.
//
// The functions have no state, so any thread may call them.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string_view>

#include "base/clock.h"

namespace muster {

// How far a worker's training is, by its output (agent/progress/rank_progress.h).
struct TrainingFacts {
  int rank = 0;
  double position = 0;
  bool in_epochs = false;  // what `position` and `end` count; else steps
  std::optional<double> end, epoch, loss;
  std::optional<Duration> step_time, left;
  bool operator==(const TrainingFacts&) const = default;
};

enum class TimeUse {
  kWaiting,   // until the first round: for other nodes, and for the rendezvous
  kStart,     // from the start of the workers until they train: Python's imports, data, a checkpoint
  kTraining,  // work that was not done before
  kRedone,    // work that an earlier attempt had done
  kHang,      // from the last sign of progress until the hang was found
  kRestart,   // from the first sign of an attempt's end until the workers of the next one run
};
inline constexpr size_t kTimeUses = 6;
// "waiting", "start", "training", "redone", "hang", "restart".
std::string_view TimeUseName(TimeUse use);

using TimeSpent = std::array<Duration, kTimeUses>;  // by TimeUse
// What is read from outside has no more for a use: the sum of all uses still fits.
inline constexpr double kMostSecondsSpent = 1e8;

Duration TotalOf(const TimeSpent& spent);
// The part of it that trained: 0 to 1. nullopt: no time has passed.
std::optional<double> GoodputOf(const TimeSpent& spent);

// The time of one agent's run. Each moment since `began_unix_ms` counts as one use.
struct RunTime {
  int64_t began_unix_ms = 0;  // by the clock of the agent's machine: it also tells two agents apart
  TimeSpent spent{};
  bool operator==(const RunTime&) const = default;
};

}  // namespace muster

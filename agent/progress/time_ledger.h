// SPDX-License-Identifier: Apache-2.0
// Where the time of a run went on this node: each moment from Begin() on belongs to one use, so the uses add up to the
// wall time. Pure: the caller gives each event with its moment. Not thread-safe.
//
// Positions are those of rank_progress.h: after a restart the work up to the highest position of the attempts before
// is done again.
//
// A program that tells no progress trains from its first output on, or from its start if its output is not seen, or if
// it succeeds without any. Of one that does, the time until its first position in an attempt is its start, whatever it
// wrote before.
//
// Of a program that tells no positions but is known to save checkpoints, the work after its last one is not kept: it
// counts as redone once the next attempt runs, or the run is over. One that is saved while the workers are stopped
// still counts.
#pragma once

#include <optional>

#include "base/clock.h"
#include "base/run_facts.h"

namespace muster::agent {

class TimeLedger {
 public:
  // All moments are those of the monotonic clock, and never go back.
  void Begin(TimePoint now);
  void WorkersRun(TimePoint now);
  void FirstOutput(TimePoint now);  // of this attempt
  void Position(double position, TimePoint now);
  void Saved(TimePoint now);  // a checkpoint
  void Succeeded();           // the workers of this node, before any Stops()
  // The attempt begins to end. `hangs_since`: it ends because it hangs, with the last sign of progress at that moment.
  void Stops(TimePoint now, std::optional<TimePoint> hangs_since = std::nullopt);
  void End(TimePoint now);  // the run is decided: nothing counts from here on

  TimeSpent At(TimePoint now) const;
  // Without the present span, whose use may turn out to be another one. So no number of it ever shrinks.
  const TimeSpent& Ended() const { return ended_; }

 private:
  void Enter(std::optional<TimeUse> use, TimePoint now);
  void Settle();

  TimeSpent ended_{};
  std::optional<TimeUse> use_;  // of the present span; nullopt: before Begin(), and after End()
  TimePoint since_{};
  std::optional<double> highest_;         // position of all attempts
  std::optional<double> highest_before_;  // of the attempts before this one
  bool has_position_ = false;             // this attempt has told one
  std::optional<TimePoint> saved_;        // the last checkpoint
  Duration not_kept_{};                   // of kTraining, if no checkpoint comes any more
};

}  // namespace muster::agent

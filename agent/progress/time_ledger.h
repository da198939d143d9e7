// Where the time of a run went on this node: each moment from Begin() on belongs to one use, so the uses add up to the
// wall time. Pure: the caller gives each event with its moment. Not thread-safe.
//
// The goodput is the share of kTraining. Positions are those of rank_progress.h: after a restart the work up to the
// highest position of the attempts before is done again.
//
// A program that tells no progress trains from its first output on. Of one that does, the time until its first position
// in an attempt is its start, whatever it wrote before.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string_view>

#include "base/clock.h"

namespace muster::agent {

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

class TimeLedger {
 public:
  // All moments are those of the monotonic clock, and never go back.
  void Begin(TimePoint now);
  void WorkersRun(TimePoint now);
  void FirstOutput(TimePoint now);  // of this attempt
  void Position(double position, TimePoint now);
  // The attempt begins to end. `hangs_since`: it ends because it hangs, with the last sign of progress at that moment.
  void Stops(TimePoint now, std::optional<TimePoint> hangs_since = std::nullopt);
  void End(TimePoint now);  // the run is decided: nothing counts from here on

  using Spent = std::array<Duration, kTimeUses>;  // by TimeUse
  Spent At(TimePoint now) const;
  // Without the present span, whose use may turn out to be another one. So no number of it ever shrinks.
  const Spent& Ended() const { return ended_; }
  // kTraining over the sum; nullopt: no time has passed.
  std::optional<double> Goodput(TimePoint now) const;

 private:
  void Enter(std::optional<TimeUse> use, TimePoint now);

  Spent ended_{};
  std::optional<TimeUse> use_;  // of the present span; nullopt: before Begin(), and after End()
  TimePoint since_{};
  std::optional<double> highest_;         // position of all attempts
  std::optional<double> highest_before_;  // of the attempts before this one
  bool has_position_ = false;             // this attempt has told one
};

}  // namespace muster::agent

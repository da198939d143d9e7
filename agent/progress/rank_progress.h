// SPDX-License-Identifier: Apache-2.0
// The progress of one rank, from what its lines say: how far it is, how long a step takes, when it will end, the curve
// of its loss. Passive; bounded memory. Not thread-safe.
//
// A position counts the whole run, so two attempts can be compared. Programs count steps in one of two ways:
//   of the run    "step 250 of 1000"; HF Trainer's bar; Megatron-LM
//   of an epoch   tqdm and Lightning begin anew with each epoch. A line that has a whole epoch beside "112/938" counts
//                 so, and so does a program whose steps have begun anew once they had come to their end.
// A program that tells only epochs has positions in epochs.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "agent/progress/progress_line.h"
#include "base/clock.h"

namespace muster::agent {

struct LossPoint {
  TimePoint came{};
  double position = 0;
  double loss = 0;  // finite
  bool operator==(const LossPoint&) const = default;
};

class RankProgress {
 public:
  static constexpr size_t kMostPoints = 256;   // of the curve
  static constexpr size_t kMostSamples = 128;  // of step times

  void Add(const ProgressLine& line, TimePoint now);

  // Steps (or epochs, with in_epochs) done; nullopt: no line has said it.
  std::optional<double> position() const { return position_; }
  bool in_epochs() const { return in_epochs_; }
  // The position at which the run ends; nullopt: not known.
  std::optional<double> end() const;
  // As the program wrote them last.
  const ProgressLine& last() const { return last_; }
  std::optional<TimePoint> last_came() const { return last_came_; }  // of a line that moved the position

  // The median time of a step (or epoch) over the newest samples; nullopt: fewer than two positions were told.
  std::optional<Duration> step_time() const;
  // How long the run still takes at that pace, from the last position on.
  std::optional<Duration> left() const;

  // At most kMostPoints, in the order of time. When it is full, every other point is dropped, and from then on half as
  // many are taken.
  const std::vector<LossPoint>& curve() const { return curve_; }

 private:
  void MoveTo(double position, bool in_epochs, TimePoint now);
  void AddLoss(double loss, TimePoint now);

  ProgressLine last_;
  std::optional<double> position_;
  bool in_epochs_ = false;
  bool steps_of_epoch_ = false;  // the program counts the steps of an epoch
  double epochs_before_ = 0;     // steps of ended epochs, of a program that does not tell the epoch beside the step
  std::optional<TimePoint> last_came_;
  std::vector<Duration> samples_;  // a ring
  size_t next_sample_ = 0;
  std::vector<LossPoint> curve_;
  size_t stride_ = 1, skipped_ = 0;  // of the curve
};

}  // namespace muster::agent

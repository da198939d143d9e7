// SPDX-License-Identifier: Apache-2.0
#include "agent/progress/rank_progress.h"

#include <algorithm>
#include <cmath>

namespace muster::agent {
namespace {

// So long after the last line of one bar another bar with another end counts.
constexpr auto kQuiet = std::chrono::minutes(1);
constexpr Duration kLongestLeft = std::chrono::hours(24 * 3650);

bool IsWhole(double number) { return std::floor(number) == number; }

bool HasEnded(const ProgressLine& line) { return line.step && line.steps && *line.step + 1 >= *line.steps; }

}  // namespace

void RankProgress::Add(const ProgressLine& line, TimePoint now) {
  const bool another_bar = line.steps && last_.steps && *line.steps != *last_.steps;
  if (another_bar && !HasEnded(last_) && last_came_ && now - *last_came_ < kQuiet) return;
  if (line.step) {
    const auto step = static_cast<double>(*line.step);
    if (line.epoch && line.steps && IsWhole(*line.epoch)) {
      steps_of_epoch_ = true;
      MoveTo(*line.epoch * static_cast<double>(*line.steps) + step, false, now);
    } else {
      if (last_.step && last_.steps && *line.step < *last_.step && HasEnded(last_) && !another_bar) {
        steps_of_epoch_ = true;
        epochs_before_ += static_cast<double>(*last_.steps);
      }
      MoveTo(epochs_before_ + step, false, now);
    }
  } else if (line.epoch && (in_epochs_ || !position_)) {
    MoveTo(*line.epoch, true, now);
  }
  if (line.loss) AddLoss(*line.loss, now);
  if (line.step) last_.step = line.step;
  if (line.steps) last_.steps = line.steps;
  if (line.epoch) last_.epoch = line.epoch;
  if (line.epochs) last_.epochs = line.epochs;
  if (line.loss) last_.loss = line.loss;
}

void RankProgress::MoveTo(double position, bool in_epochs, TimePoint now) {
  if (position_ && in_epochs_ == in_epochs && position == *position_) return;
  const bool ahead = position_ && in_epochs_ == in_epochs && position > *position_;
  if (ahead && last_came_ && now > *last_came_) {
    const auto sample = std::chrono::duration_cast<Duration>((now - *last_came_) / (position - *position_));
    if (samples_.size() < kMostSamples) {
      samples_.push_back(sample);
    } else {
      samples_[next_sample_] = sample;
      next_sample_ = (next_sample_ + 1) % kMostSamples;
    }
  }
  if (position_ && in_epochs_ != in_epochs) samples_.clear(), next_sample_ = 0;
  position_ = position;
  in_epochs_ = in_epochs;
  last_came_ = now;
}

void RankProgress::AddLoss(double loss, TimePoint now) {
  if (!std::isfinite(loss) || skipped_++ % stride_ != 0) return;
  if (curve_.size() == kMostPoints) {
    for (size_t i = 0; 2 * i < curve_.size(); ++i) curve_[i] = curve_[2 * i];
    curve_.resize(kMostPoints / 2);
    stride_ *= 2;
  }
  curve_.push_back({now, position_.value_or(0), loss});
}

std::optional<double> RankProgress::end() const {
  if (!position_) return std::nullopt;
  if (in_epochs_) return last_.epochs;
  if (!last_.steps) return std::nullopt;
  const auto steps = static_cast<double>(*last_.steps);
  if (!steps_of_epoch_) return steps;
  if (!last_.epochs) return std::nullopt;
  // An epoch beside the step counts in the position, from 0 or 1. "Epoch 0/4" is the first of five.
  return epochs_before_ > 0 ? steps * *last_.epochs : steps * (*last_.epochs + 1);
}

std::optional<Duration> RankProgress::step_time() const {
  if (samples_.empty()) return std::nullopt;
  std::vector<Duration> sorted = samples_;
  const auto middle = sorted.begin() + static_cast<std::ptrdiff_t>(sorted.size() / 2);
  std::nth_element(sorted.begin(), middle, sorted.end());
  return *middle;
}

std::optional<Duration> RankProgress::left() const {
  const auto to = end();
  const auto each = step_time();
  if (!to || !each) return std::nullopt;
  const double nanoseconds = std::max(0.0, *to - *position_) * static_cast<double>(each->count());
  if (nanoseconds > static_cast<double>(kLongestLeft.count())) return std::nullopt;
  return Duration(static_cast<Duration::rep>(nanoseconds));
}

}  // namespace muster::agent

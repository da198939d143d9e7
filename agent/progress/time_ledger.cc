// SPDX-License-Identifier: Apache-2.0
#include "agent/progress/time_ledger.h"

#include <algorithm>
#include <utility>

namespace muster::agent {

// Ends the present span at `now`.
void TimeLedger::Enter(std::optional<TimeUse> use, TimePoint now) {
  if (use_) ended_[static_cast<size_t>(*use_)] += std::max(Duration{}, now - since_);
  use_ = use;
  since_ = now;
}

void TimeLedger::Begin(TimePoint now) { Enter(TimeUse::kWaiting, now); }

void TimeLedger::Succeeded() {
  if (use_ == TimeUse::kStart && !highest_) use_ = TimeUse::kTraining;
}

void TimeLedger::Saved(TimePoint now) {
  saved_ = now;
  not_kept_ = {};
}

void TimeLedger::Settle() {
  ended_[static_cast<size_t>(TimeUse::kTraining)] -= not_kept_;
  ended_[static_cast<size_t>(TimeUse::kRedone)] += not_kept_;
  not_kept_ = {};
}

void TimeLedger::WorkersRun(TimePoint now) {
  Settle();
  Enter(TimeUse::kStart, now);
  highest_before_ = highest_;
  has_position_ = false;
}

void TimeLedger::FirstOutput(TimePoint now) {
  if (use_ == TimeUse::kStart && !highest_) Enter(TimeUse::kTraining, now);
}

void TimeLedger::Position(double position, TimePoint now) {
  const bool works = use_ == TimeUse::kStart || use_ == TimeUse::kTraining || use_ == TimeUse::kRedone;
  if (!works) return;
  if (!std::exchange(has_position_, true)) use_ = TimeUse::kStart;  // also what came after the first output
  const bool again = highest_before_ && position <= *highest_before_;
  Enter(again ? TimeUse::kRedone : TimeUse::kTraining, now);
  highest_ = std::max(highest_.value_or(position), position);
}

void TimeLedger::Stops(TimePoint now, std::optional<TimePoint> hangs_since) {
  if (!use_ || use_ == TimeUse::kRestart) return;
  const TimePoint until = std::clamp(hangs_since.value_or(now), since_, std::max(since_, now));
  if (use_ == TimeUse::kTraining && !has_position_ && saved_) not_kept_ = until - std::clamp(*saved_, since_, until);
  if (hangs_since) Enter(TimeUse::kHang, until);
  Enter(TimeUse::kRestart, now);
}

void TimeLedger::End(TimePoint now) {
  Settle();
  Enter(std::nullopt, now);
}

TimeSpent TimeLedger::At(TimePoint now) const {
  TimeSpent spent = ended_;
  if (use_) spent[static_cast<size_t>(*use_)] += std::max(Duration{}, now - since_);
  return spent;
}

}  // namespace muster::agent

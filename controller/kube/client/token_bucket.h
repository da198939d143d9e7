// SPDX-License-Identifier: Apache-2.0
// A token bucket: allows `burst` actions at once, then `per_second`. Pure.
#pragma once

#include <algorithm>
#include <chrono>

#include "base/clock.h"

namespace muster::controller {

class TokenBucket {
 public:
  TokenBucket(double per_second, int burst) : per_second_(per_second), burst_(burst), tokens_(burst) {}

  // Takes a token, even one that does not exist yet. Returns how long to wait for it. Later calls wait longer.
  Duration Take(TimePoint now) {
    Fill(now);
    tokens_ -= 1;
    if (tokens_ >= 0) return Duration::zero();
    return std::chrono::duration_cast<Duration>(std::chrono::duration<double>(-tokens_ / per_second_));
  }
  // Takes a token. False: there is none.
  bool TryTake(TimePoint now) {
    Fill(now);
    if (tokens_ < 1) return false;
    tokens_ -= 1;
    return true;
  }

 private:
  void Fill(TimePoint now) {
    if (filled_ != TimePoint{}) {
      tokens_ = std::min(burst_, tokens_ + std::chrono::duration<double>(now - filled_).count() * per_second_);
    }
    filled_ = now;
  }

  const double per_second_, burst_;
  double tokens_;
  TimePoint filled_{};
};

}  // namespace muster::controller

// SPDX-License-Identifier: Apache-2.0
#include "initializers/transfer/request_limit.h"

#include <algorithm>

namespace muster::initializers {
namespace {

constexpr double kBetter = 1.08;  // a smaller gain is noise
constexpr int kQuietWindows = 8;  // after a step that gained nothing

}  // namespace

RequestLimitOptions Within(RequestLimitOptions limits, size_t blocks) {
  limits.most = std::min(limits.most, std::max(1, static_cast<int>(blocks) - 1));
  limits.first = std::min(limits.first, limits.most);
  limits.least = std::min(limits.least, limits.most);
  return limits;
}

void RequestLimit::Progressed(uint64_t bytes, int done, bool busy, TimePoint now) {
  if (began_ == TimePoint{}) began_ = now;
  worth_ += bytes + kWorth * static_cast<uint64_t>(done);
  idle_ = idle_ || !busy;
  const Duration passed = now - began_;
  if (passed < limits_.window) return;
  const double rate = static_cast<double>(worth_) / std::chrono::duration<double>(passed).count();
  const bool judge = !idle_;
  worth_ = 0;
  idle_ = false;
  began_ = now;
  if (judge) Judge(rate);
}

void RequestLimit::Judge(double rate) {
  if (rate > best_ * kBetter || target_ == best_target_) {
    const bool more = rate > best_ * kBetter;
    best_ = more ? rate : 0.5 * (best_ + rate);  // an old best rate may not be reachable any more
    best_target_ = target_;
    if (!more && quiet_ > 0) {
      --quiet_;
      return;
    }
    target_ = std::min(limits_.most, target_ + std::max(1, target_ / 2));
    return;
  }
  target_ = best_target_;
  quiet_ = kQuietWindows;
}

void RequestLimit::Throttled(TimePoint now) {
  if (throttled_ != TimePoint{} && now - throttled_ < limits_.window) return;
  throttled_ = now;
  target_ = std::max(limits_.least, target_ / 2);
  best_ = 0;
  best_target_ = target_;
  quiet_ = kQuietWindows;
}

}  // namespace muster::initializers

// SPDX-License-Identifier: Apache-2.0
#include "initializers/transfer/range_size.h"

#include <algorithm>
#include <chrono>

namespace muster::initializers {
namespace {

constexpr double kWaits = 20;          // a range takes this many times its latency: 5 % of the time is lost
constexpr double kLongest = 30;        // s; longest time of a range
constexpr double kNear = 0.01;         // s; latency
constexpr double kNewest = 0.25;       // weight of the newest request
constexpr double kLonger = 0.05;       // the same for a request that waited longer than the soonest
constexpr uint64_t kEnough = 1 << 20;  // bytes; fewer say nothing about the rate

double Seconds(Duration duration) { return std::chrono::duration<double>(duration).count(); }

std::span<const StagedRange> NotedFrom(uint64_t offset, const std::vector<StagedRange>& noted) {
  auto first = std::lower_bound(noted.begin(), noted.end(), offset, [](const StagedRange& staged, uint64_t offset) {
    return staged.range.offset < offset;
  });
  return {first, noted.end()};
}

}  // namespace

void RangeSize::Fetched(uint64_t bytes, Duration waited, Duration took) {
  if (bytes < kEnough || took <= Duration::zero()) return;
  const double weight = rate_ == 0 ? 1 : kNewest;
  rate_ += weight * (static_cast<double>(bytes) / Seconds(took) - rate_);
  waited_ += weight * (Seconds(waited) - waited_);
  const bool sooner = soonest_ == 0 || Seconds(waited) < soonest_;
  soonest_ += (sooner ? 1 : kLonger) * (Seconds(waited) - soonest_);
}

uint64_t RangeSize::Bytes(double seconds) const {
  return static_cast<uint64_t>(std::min(rate_ * seconds, static_cast<double>(limits_.most)));
}

uint64_t RangeSize::Next(uint64_t left, int requests) const {
  if (rate_ == 0) return limits_.usual;
  uint64_t size = std::max(limits_.usual, Bytes(kWaits * waited_));
  size = std::min(size, std::max(limits_.usual, left / static_cast<uint64_t>(std::max(1, requests))));
  return std::min(size, std::max(limits_.least, Bytes(kLongest)));
}

bool RangeSize::near() const { return rate_ > 0 && soonest_ < kNear; }

uint64_t RangeSize::NextInOrder() const {
  if (rate_ == 0 || near()) return limits_.least;
  return std::min(limits_.usual, std::max(limits_.least, Bytes(kLongest)));
}

ByteRange NextRange(uint64_t next, uint64_t size, uint64_t most, uint64_t unit, const std::vector<StagedRange>& noted) {
  uint64_t end = size - next > most ? next + std::max(most / unit, uint64_t{1}) * unit : size;
  uint64_t there = next;  // end of the noted bytes without a gap
  for (const StagedRange& staged : NotedFrom(next, noted)) {
    if (staged.range.offset == there) there = staged.range.end();
    if (staged.range.offset <= there) continue;
    const uint64_t begins = (staged.range.offset + unit - 1) / unit * unit;
    if (begins > there) end = std::min(end, begins);
    break;
  }
  return {next, std::min(end, size) - next};
}

std::span<const StagedRange> NotedIn(ByteRange range, uint64_t size, uint64_t most, uint64_t unit,
                                     const std::vector<StagedRange>& noted) {
  const auto from = NotedFrom(range.offset, noted);
  uint64_t there = range.offset;
  size_t count = 0;
  for (const StagedRange& staged : from) {
    const uint64_t end = staged.range.end();
    if (staged.range.offset != there || staged.range.length > most || end > range.end()) break;
    if (end % unit != 0 && end != size) break;
    there = end;
    ++count;
  }
  return from.first(count);
}

}  // namespace muster::initializers

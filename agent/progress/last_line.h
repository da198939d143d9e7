// SPDX-License-Identifier: Apache-2.0
// The newest line of one rank's output. Passive; bounded memory; not thread-safe.
//
// Only the end of what comes is kept, and it is read only when somebody asks: so a program that writes very much costs
// next to nothing.
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "base/clock.h"

namespace muster::agent {

class LastLine {
 public:
  static constexpr size_t kKept = 2048;  // bytes at the end of the output in which the line is sought

  // Bytes as they came, of any stream of the rank.
  void Add(std::string_view bytes, TimePoint now);
  // The newest line that is not blank, whether it has ended or not, as a terminal shows it; at most `most` bytes of it.
  // Not necessarily UTF-8.
  std::string Text(size_t most) const;
  std::optional<TimePoint> came() const { return came_; }  // of the last byte

 private:
  std::string end_;  // at most 2 * kKept bytes
  std::optional<TimePoint> came_;
};

}  // namespace muster::agent

// SPDX-License-Identifier: Apache-2.0
// The end of a stream, with the times at which its parts came, for base/reason_line.h. Passive.
#pragma once

#include <cstddef>
#include <deque>
#include <string>
#include <string_view>

#include "base/clock.h"

namespace muster::launcher {

class RecentText {
 public:
  // Keeps the last `most` bytes, and less than half as many more, of those that came within `age` before the last Add.
  RecentText(size_t most, Duration age) : most_(most), age_(age) {}

  void Add(std::string_view bytes, TimePoint now);

  struct Part {
    std::string text;
    size_t fresh_from = 0;  // offset in `text`
  };
  // The bytes that came since `from`; `fresh_from` is where those since `fresh` begin. Bytes that came within a quarter
  // of a second may share the time of the first of them.
  Part Since(TimePoint from, TimePoint fresh) const;

 private:
  struct Piece {
    TimePoint came;
    std::string bytes;
  };
  const size_t most_;
  const Duration age_;
  size_t size_ = 0;
  std::deque<Piece> pieces_;
};

}  // namespace muster::launcher

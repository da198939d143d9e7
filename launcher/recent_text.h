// The end of a stream with the times at which its parts came: what base/reason_line.h looks at. Passive.
#pragma once

#include <cstddef>
#include <deque>
#include <string>
#include <string_view>

#include "base/clock.h"

namespace muster::launcher {

class RecentText {
 public:
  // Keeps the last `most` bytes, and less than half as many more, of what came within `age` of the last Add.
  RecentText(size_t most, Duration age) : most_(most), age_(age) {}

  void Add(std::string_view bytes, TimePoint now);

  struct Part {
    std::string text;
    size_t fresh_from = 0;  // offset in `text`
  };
  // What came since `from`, and where in it begins what came since `fresh`. Pieces that came within a quarter of a
  // second have the time of the first of them.
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

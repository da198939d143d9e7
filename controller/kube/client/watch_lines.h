// SPDX-License-Identifier: Apache-2.0
// Splits the body of a watch, which comes in any pieces, into lines of one JSON object each. Pure; untrusted input.
#pragma once

#include <cstddef>
#include <functional>
#include <string>
#include <string_view>

namespace muster::controller {

class WatchLines {
 public:
  // `whole`: false for a line that is longer than the limit: `text` is its beginning.
  using Line = std::function<bool(std::string_view text, bool whole)>;

  // `longest`: the most bytes of a line that are kept.
  explicit WatchLines(size_t longest) : longest_(longest) {}

  // Calls `line` for each complete line but empty ones, in order, without its end, until it returns false. Keeps a
  // line's beginning until its rest comes.
  void Take(std::string_view bytes, const Line& line);

 private:
  const size_t longest_;
  std::string part_;
  bool cut_ = false;  // bytes of the line that `part_` begins were dropped
};

}  // namespace muster::controller

// Splits the body of a watch, which comes in any pieces, into lines of one JSON object each. Pure; untrusted input.
#pragma once

#include <cstddef>
#include <functional>
#include <string>
#include <string_view>

#include "base/status.h"

namespace muster::controller {

class WatchLines {
 public:
  // `longest`: the most bytes that a line may have.
  explicit WatchLines(size_t longest) : longest_(longest) {}

  // Calls `line` for each whole line but empty ones, in order, without its end, until it returns false. Keeps a line's
  // beginning until its rest comes. ResourceExhausted: a line is longer than `longest`; nothing can be read then.
  Status Take(std::string_view bytes, const std::function<bool(std::string_view)>& line);

 private:
  const size_t longest_;
  std::string part_;
};

}  // namespace muster::controller

// The body of a watch: one JSON object a line, cut anywhere on its way. Pure; outside bytes.
#pragma once

#include <cstddef>
#include <functional>
#include <string>
#include <string_view>

#include "base/status.h"

namespace muster::controller {

class WatchLines {
 public:
  // `longest`: bytes of a line that are kept.
  explicit WatchLines(size_t longest) : longest_(longest) {}

  // `line` is called for each whole line, in order, without its end; empty ones are left out. False: no more is wanted.
  // What begins a line waits for the rest. ResourceExhausted: a line is longer than `longest`; nothing can be read
  // then.
  Status Take(std::string_view bytes, const std::function<bool(std::string_view)>& line);

 private:
  const size_t longest_;
  std::string part_;
};

}  // namespace muster::controller

// SPDX-License-Identifier: Apache-2.0
// --progress-pattern: a further form of lines that tell of a training, as a regular expression of RE2
// (github.com/google/re2/wiki/Syntax) with named groups: (?P<step>\d+), and steps, epoch, epochs, loss. Immutable, so
// thread-safe. Takes time linear in the line.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <string_view>

#include "agent/progress/progress_line.h"
#include "base/status.h"

namespace re2 {
class RE2;
}

namespace muster::agent {

class ProgressPattern {
 public:
  // InvalidArgument: it is no expression, has another named group, or neither step, epoch nor loss.
  static StatusOr<std::shared_ptr<const ProgressPattern>> Compile(const std::string& expression);
  ~ProgressPattern();

  // nullopt: the line does not match, or the groups that matched hold no number that a program counts.
  std::optional<ProgressLine> Read(std::string_view line) const;

 private:
  explicit ProgressPattern(std::unique_ptr<re2::RE2> expression);
  const std::unique_ptr<re2::RE2> expression_;
};

}  // namespace muster::agent

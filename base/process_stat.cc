// SPDX-License-Identifier: Apache-2.0
#include "base/process_stat.h"

#include "base/text.h"

namespace muster {
namespace {

constexpr size_t kFirst = 4;  // field after the name and the state

}  // namespace

std::optional<ProcessStat> ProcessStat::Parse(std::string_view line) {
  const size_t open = line.find('('), close = line.rfind(')');
  if (open == std::string_view::npos || close == std::string_view::npos || close < open) return std::nullopt;
  ProcessStat stat;
  stat.name_ = line.substr(open + 1, close - open - 1);
  std::string_view state;
  for (std::string_view word : Split(Strip(line.substr(close + 1)), ' ')) {
    if (word.empty()) continue;
    if (state.empty()) {
      state = word;
    } else {
      stat.fields_.push_back(ParseInt(word));
    }
  }
  if (state.size() != 1) return std::nullopt;
  stat.state_ = state[0];
  return stat;
}

std::optional<int64_t> ProcessStat::Field(size_t number) const {
  if (number < kFirst || number - kFirst >= fields_.size()) return std::nullopt;
  return fields_[number - kFirst];
}

}  // namespace muster

// SPDX-License-Identifier: Apache-2.0
// Parses /proc/PID/stat, or the same file of a thread. Pure.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace muster {

class ProcessStat {
 public:
  // nullopt: no such line. The process name may hold any characters, also brackets and blanks.
  static std::optional<ProcessStat> Parse(std::string_view line);

  const std::string& name() const { return name_; }
  char state() const { return state_; }
  bool dead() const { return state_ == 'Z' || state_ == 'X'; }
  // By the number of proc(5), from 4 (the parent) on. nullopt: no such field, or beyond int64_t.
  std::optional<int64_t> Field(size_t number) const;

 private:
  std::string name_;
  char state_ = '?';
  std::vector<std::optional<int64_t>> fields_;  // from 4 on; nullopt: an unsigned value beyond int64_t
};

}  // namespace muster

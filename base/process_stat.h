// One line of /proc/PID/stat, or of a thread's. Pure.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace muster {

class ProcessStat {
 public:
  // Nothing: that is no such line. The name may hold anything, brackets and blanks too.
  static std::optional<ProcessStat> Parse(std::string_view line);

  const std::string& name() const { return name_; }
  char state() const { return state_; }
  bool dead() const { return state_ == 'Z' || state_ == 'X'; }
  // By proc(5)'s number, from 4 (the parent) on; nothing: the kernel has no such field.
  std::optional<int64_t> Field(size_t number) const;

 private:
  std::string name_;
  char state_ = '?';
  std::vector<std::optional<int64_t>> fields_;  // from 4 on; an unsigned one beyond int64_t is nothing
};

}  // namespace muster

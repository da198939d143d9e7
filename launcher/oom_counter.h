// The kernel's count of processes killed for memory in our cgroup (v2: memory.events, v1: memory.oom_control).
#pragma once

#include <cstdint>
#include <optional>
#include <string>

namespace muster::launcher {

class OomCounter {
 public:
  // `root`: where /proc and /sys/fs/cgroup are looked up; a test's own tree, else empty.
  explicit OomCounter(const std::string& root = "");

  // nullopt where no counter can be read.
  std::optional<int64_t> Read() const;

 private:
  std::string file_;  // "": none
};

}  // namespace muster::launcher

// SPDX-License-Identifier: Apache-2.0
// The kernel's count of OOM kills in this process's cgroup (v2: memory.events, v1: memory.oom_control).
#pragma once

#include <cstdint>
#include <optional>
#include <string>

namespace muster::launcher {

class OomCounter {
 public:
  // `root` is put before /proc and /sys/fs/cgroup. Empty, except in tests: the process's cgroup is looked up once then,
  // by the first counter.
  explicit OomCounter(const std::string& root = "");

  // nullopt if no counter can be read.
  std::optional<int64_t> Read() const;

 private:
  std::string file_;  // empty: no counter
};

}  // namespace muster::launcher

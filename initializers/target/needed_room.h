// SPDX-License-Identifier: Apache-2.0
// Compares the disk space that a run's files need with the free space, before a byte is moved. Pure.
#pragma once

#include <cstdint>
#include <string_view>

#include "base/status.h"
#include "initializers/target/leftovers.h"

namespace muster::initializers {

class NeededRoom {
 public:
  // Adds a file of `size` bytes that already takes `held` bytes of the disk.
  void Add(uint64_t size, uint64_t held);
  // ResourceExhausted: the added files do not fit into `room`; the message names source and target.
  Status Check(const DiskRoom& room, std::string_view source, std::string_view target) const;

 private:
  uint64_t bytes_ = 0, files_ = 0;
};

}  // namespace muster::initializers

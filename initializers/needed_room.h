// What a run's files will take of the disk, held against the room there is, before a byte is moved. Pure.
#pragma once

#include <cstdint>
#include <string_view>

#include "base/status.h"
#include "initializers/leftovers.h"

namespace muster::initializers {

class NeededRoom {
 public:
  // A file of `size` bytes, for which `held` bytes of the disk are taken already.
  void Add(uint64_t size, uint64_t held);
  // ResourceExhausted: all that was added does not fit into `room`; says of which source, into which target.
  Status Check(const DiskRoom& room, std::string_view source, std::string_view target) const;

 private:
  uint64_t bytes_ = 0, files_ = 0;
};

}  // namespace muster::initializers

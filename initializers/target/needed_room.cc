// SPDX-License-Identifier: Apache-2.0
#include "initializers/target/needed_room.h"

#include <algorithm>

#include "base/text.h"

namespace muster::initializers {

void NeededRoom::Add(uint64_t size, uint64_t held) {
  constexpr uint64_t kPage = 4096;
  const uint64_t taken = (size + kPage - 1) / kPage * kPage;
  files_ += held == 0 ? 1 : 0;
  bytes_ += taken - std::min(taken, held);
}

Status NeededRoom::Check(const DiskRoom& room, std::string_view source, std::string_view target) const {
  if (bytes_ > room.bytes) {
    return absl::ResourceExhaustedError(fmt::format("{} needs {} bytes and {} are free in {}: give it a larger volume",
                                                    source, bytes_, room.bytes, target));
  }
  if (room.files && files_ > *room.files) {
    return absl::ResourceExhaustedError(
        fmt::format("{} has {} files and there is room for {} more in {} (inodes): give it another volume", source,
                    files_, *room.files, target));
  }
  return absl::OkStatus();
}

}  // namespace muster::initializers

// SPDX-License-Identifier: Apache-2.0
#include "controller/kube/client/watch_frames.h"

#include <algorithm>
#include <utility>

namespace muster::controller {

void WatchFrames::Take(std::string_view bytes, const Frame& frame) {
  while (!bytes.empty()) {
    if (!in_frame_) {
      const std::string_view piece = bytes.substr(0, kHead - part_.size());
      part_ += piece;
      bytes.remove_prefix(piece.size());
      if (part_.size() < kHead) return;
      size_ = 0;
      for (const char byte : std::exchange(part_, {})) size_ = size_ << 8 | static_cast<uint8_t>(byte);
      skipped_ = 0;
      in_frame_ = size_ > 0;
      if (size_ >= kImpossible && !frame({}, false)) return;
      continue;
    }
    const std::string_view rest = bytes.substr(0, size_ - part_.size() - skipped_);
    const std::string_view kept = rest.substr(0, longest_ - std::min(longest_, part_.size()));
    bytes.remove_prefix(rest.size());
    skipped_ += rest.size() - kept.size();
    if (part_.size() + kept.size() + skipped_ < size_) {
      part_ += kept;
      continue;
    }
    // Not members: `frame` may destroy this object.
    std::string joined = std::exchange(part_, {});
    const bool whole = skipped_ == 0;
    in_frame_ = false;
    std::string_view text = kept;
    if (!joined.empty()) text = joined += kept;
    if (!frame(text, whole)) return;
  }
}

}  // namespace muster::controller

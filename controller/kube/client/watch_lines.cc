// SPDX-License-Identifier: Apache-2.0
#include "controller/kube/client/watch_lines.h"

#include <utility>

namespace muster::controller {

void WatchLines::Take(std::string_view bytes, const Line& line) {
  while (!bytes.empty()) {
    const size_t end = bytes.find('\n');
    const std::string_view rest = bytes.substr(0, end), piece = rest.substr(0, longest_ - part_.size());
    cut_ = cut_ || piece.size() < rest.size();
    if (end == std::string_view::npos) {
      part_ += piece;
      return;
    }
    bytes.remove_prefix(end + 1);
    // Not members: `line` may destroy this object.
    std::string joined = std::exchange(part_, {});
    const bool whole = !std::exchange(cut_, false);
    std::string_view text = piece;
    if (!joined.empty()) text = joined += piece;
    if (text.ends_with('\r')) text.remove_suffix(1);
    if (!text.empty() && !line(text, whole)) return;
  }
}

}  // namespace muster::controller

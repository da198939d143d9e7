#include "controller/kube/watch_lines.h"

#include "base/text.h"

namespace muster::controller {

Status WatchLines::Take(std::string_view bytes, const std::function<bool(std::string_view)>& line) {
  while (!bytes.empty()) {
    const size_t end = bytes.find('\n');
    const std::string_view piece = bytes.substr(0, end);
    if (piece.size() > longest_ - part_.size()) {
      return absl::ResourceExhaustedError(fmt::format("a line of the watch is longer than {} bytes", longest_));
    }
    if (end == std::string_view::npos) {
      part_ += piece;
      return absl::OkStatus();
    }
    bytes.remove_prefix(end + 1);
    std::string whole;  // not a member: `line` may destroy this object
    std::string_view text = piece;
    if (!part_.empty()) {
      whole = std::move(part_);
      part_.clear();
      whole += piece;
      text = whole;
    }
    if (text.ends_with('\r')) text.remove_suffix(1);
    if (!text.empty() && !line(text)) return absl::OkStatus();
  }
  return absl::OkStatus();
}

}  // namespace muster::controller

#include "agent/progress/progress_reader.h"

#include <algorithm>

namespace muster::agent {

void ProgressReader::Add(Stream stream, std::string_view bytes, TimePoint now) {
  BeginWindow(now);
  std::string& partial = partial_[static_cast<size_t>(stream)];
  while (!bytes.empty()) {
    const size_t end = bytes.find_first_of("\r\n");
    const std::string_view piece = bytes.substr(0, end);
    if (end == std::string_view::npos || !partial.empty()) {
      partial += piece.substr(0, kMaxProgressLine - std::min(partial.size(), kMaxProgressLine));
    }
    if (end == std::string_view::npos) return;
    TakeLine(partial.empty() ? piece : partial, now);
    partial.clear();
    bytes.remove_prefix(end + 1);
  }
}

const RankProgress& ProgressReader::At(TimePoint now) {
  BeginWindow(now);
  return progress_;
}

void ProgressReader::TakeLine(std::string_view line, TimePoint now) {
  line = line.substr(0, kMaxProgressLine);
  if (pattern_ == nullptr && !MayTellProgress(line)) return;
  if (lines_ == kMostLines) {
    put_off_ = line;
    put_off_came_ = now;
    return;
  }
  ++lines_;
  Read(line, now);
}

void ProgressReader::Read(std::string_view line, TimePoint came) {
  auto found = pattern_ ? pattern_->Read(line) : std::nullopt;
  if (!found) found = ReadProgressLine(line);
  if (found) progress_.Add(*found, came);
}

void ProgressReader::BeginWindow(TimePoint now) {
  if (now - window_ < kWindow) return;
  window_ = now;
  lines_ = 0;
  if (put_off_.empty()) return;
  Read(put_off_, put_off_came_);
  put_off_.clear();
}

}  // namespace muster::agent

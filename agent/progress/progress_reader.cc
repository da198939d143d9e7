// SPDX-License-Identifier: Apache-2.0
#include "agent/progress/progress_reader.h"

#include <algorithm>
#include <utility>

namespace muster::agent {

void ProgressReader::Add(Stream stream, std::string_view bytes, TimePoint now) {
  BeginWindow(now);
  StreamState& state = streams_[static_cast<size_t>(stream)];
  const size_t room = state.put_off.empty() ? kMostBytes - std::min(bytes_, kMostBytes) : 0;
  const size_t looked = std::min(bytes.size(), room);
  Look(state, bytes.substr(0, looked), now);
  if (looked < bytes.size()) PutOff(state, bytes.substr(looked), now);
}

const RankProgress& ProgressReader::At(TimePoint now) {
  BeginWindow(now);
  return progress_;
}

// A line ends with \n or \r. Each is sought once, so a piece without one of them takes linear time too.
void ProgressReader::Look(StreamState& stream, std::string_view bytes, TimePoint came) {
  bytes_ += bytes.size();
  while (!bytes.empty()) {
    const size_t newline = bytes.find('\n');
    std::string_view line = bytes.substr(0, newline);
    for (size_t end; (end = line.find('\r')) != std::string_view::npos; line.remove_prefix(end + 1)) {
      TakePiece(stream, line.substr(0, end), true, came);
    }
    TakePiece(stream, line, newline != std::string_view::npos, came);
    if (newline == std::string_view::npos) return;
    bytes.remove_prefix(newline + 1);
  }
}

void ProgressReader::TakePiece(StreamState& stream, std::string_view piece, bool ends, TimePoint came) {
  std::string& partial = stream.partial;
  if (!stream.in_cut_line && (!ends || !partial.empty())) {
    partial += piece.substr(0, kMaxProgressLine - std::min(partial.size(), kMaxProgressLine));
  }
  if (!ends) return;
  if (!stream.in_cut_line) TakeLine(partial.empty() ? piece : partial, came);
  stream.in_cut_line = false;
  partial.clear();
}

void ProgressReader::PutOff(StreamState& stream, std::string_view bytes, TimePoint came) {
  std::string& kept = stream.put_off;
  stream.put_off_came = came;
  if (kept.size() + bytes.size() <= 2 * kKeptBytes) {
    kept += bytes;
    return;
  }
  bytes.size() < kKeptBytes ? kept += bytes : kept = bytes;
  kept.erase(0, kept.size() - kKeptBytes);
  // Where the line ended that had begun is not known; what counts of it may be whole.
  if (stream.partial.size() == kMaxProgressLine) TakeLine(stream.partial, came);
  stream.partial.clear();
  stream.in_cut_line = true;
}

void ProgressReader::TakeLine(std::string_view line, TimePoint came) {
  line = line.substr(0, kMaxProgressLine);
  if (pattern_ == nullptr && !MayTellProgress(line)) return;
  if (lines_ == kMostLines) {
    newest_ = line;
    newest_came_ = came;
    return;
  }
  ++lines_;
  Read(line, came);
}

void ProgressReader::Read(std::string_view line, TimePoint came) {
  auto found = pattern_ ? pattern_->Read(line) : std::nullopt;
  if (!found) found = ReadProgressLine(line);
  if (found) progress_.Add(*found, came);
}

void ProgressReader::BeginWindow(TimePoint now) {
  if (now - window_ < kWindow) return;
  window_ = now;
  bytes_ = 0;
  lines_ = 0;
  for (StreamState& stream : streams_) {
    if (!stream.put_off.empty()) Look(stream, std::exchange(stream.put_off, {}), stream.put_off_came);
  }
  if (!newest_.empty()) Read(std::exchange(newest_, {}), newest_came_);
}

}  // namespace muster::agent

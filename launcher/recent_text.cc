// SPDX-License-Identifier: Apache-2.0
#include "launcher/recent_text.h"

#include <algorithm>

namespace muster::launcher {
namespace {

constexpr auto kSameMoment = std::chrono::milliseconds(250);

}  // namespace

void RecentText::Add(std::string_view bytes, TimePoint now) {
  const size_t longest = most_ / 4;  // size of a piece
  if (bytes.size() > most_) bytes.remove_prefix(bytes.size() - most_);
  while (!bytes.empty()) {
    const bool joins =
        !pieces_.empty() && now - pieces_.back().came < kSameMoment && pieces_.back().bytes.size() < longest;
    if (!joins) pieces_.push_back({now, ""});
    std::string& last = pieces_.back().bytes;
    const size_t taken = std::min(bytes.size(), std::max<size_t>(longest - last.size(), 1));
    last += bytes.substr(0, taken);
    bytes.remove_prefix(taken);
    size_ += taken;
  }
  while (!pieces_.empty() && (size_ - pieces_.front().bytes.size() >= most_ || now - pieces_.front().came > age_)) {
    size_ -= pieces_.front().bytes.size();
    pieces_.pop_front();
  }
}

RecentText::Part RecentText::Since(TimePoint from, TimePoint fresh) const {
  Part part;
  for (const Piece& piece : pieces_) {
    if (piece.came < from) continue;
    part.text += piece.bytes;
    if (piece.came < fresh) part.fresh_from = part.text.size();
  }
  return part;
}

}  // namespace muster::launcher

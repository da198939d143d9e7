// SPDX-License-Identifier: Apache-2.0
// Reads the progress of one rank out of what it writes: splits the bytes of its two streams into lines, and takes those
// that tell of the training. Not thread-safe.
//
// A program may write any number of lines, so the cost has a bound. In a window of kWindow, kMostBytes are looked at,
// and kMostLines of the lines that may tell (MayTellProgress) are read. What is beyond is put off to the window's end,
// and then only its newest counts: the last kKeptBytes of each stream, and the newest line. So the last position is
// always known. The memory is bounded: a line counts with its first kMaxProgressLine bytes.
#pragma once

#include <array>
#include <memory>
#include <string>
#include <string_view>

#include "agent/progress/progress_pattern.h"
#include "agent/progress/rank_progress.h"
#include "base/clock.h"

namespace muster::agent {

class ProgressReader {
 public:
  static constexpr Duration kWindow = std::chrono::milliseconds(100);
  static constexpr int kMostLines = 64;
  static constexpr size_t kMostBytes = 64 << 10;
  static constexpr size_t kKeptBytes = 4 << 10;

  // `pattern`: of lines that count besides the known forms; null: none. Every line is tried then.
  explicit ProgressReader(std::shared_ptr<const ProgressPattern> pattern = nullptr) : pattern_(std::move(pattern)) {}

  enum class Stream { kOut, kErr };
  // Bytes as they came from the pipe, in any pieces. A line ends with \n or \r.
  void Add(Stream stream, std::string_view bytes, TimePoint now);
  // With what was put off until `now`.
  const RankProgress& At(TimePoint now);

 private:
  struct StreamState {
    std::string partial;       // the line that has not ended; at most kMaxProgressLine bytes
    std::string put_off;       // the newest bytes of the window that nobody looked at; at most 2 * kKeptBytes
    TimePoint put_off_came{};  // when the last of them came
    bool in_cut_line = false;  // the beginning of the line was passed over: it ends before another counts
  };

  void Look(StreamState& stream, std::string_view bytes, TimePoint came);
  void TakePiece(StreamState& stream, std::string_view piece, bool ends, TimePoint came);
  void PutOff(StreamState& stream, std::string_view bytes, TimePoint came);
  void TakeLine(std::string_view line, TimePoint came);
  void Read(std::string_view line, TimePoint came);
  void BeginWindow(TimePoint now);

  std::shared_ptr<const ProgressPattern> pattern_;
  RankProgress progress_;
  std::array<StreamState, 2> streams_;
  TimePoint window_{};  // its begin
  size_t bytes_ = 0;    // looked at in the window
  int lines_ = 0;       // read in the window
  std::string newest_;  // line of the window that was not read
  TimePoint newest_came_{};
};

}  // namespace muster::agent

// Reads the progress of one rank out of what it writes: splits the bytes of its two streams into lines, and takes those
// that tell of the training. Not thread-safe.
//
// A program may write any number of lines. Most are passed over by a look at their letters (MayTellProgress). Of those
// that may tell, kMostLines are read in a window of kWindow; of the others of the window the newest is read at its end.
// So the cost has a bound, and the last position is always known. The memory is bounded: a line counts with its first
// kMaxProgressLine bytes.
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

  // `pattern`: of lines that count besides the known forms; null: none. Every line is tried then.
  explicit ProgressReader(std::shared_ptr<const ProgressPattern> pattern = nullptr) : pattern_(std::move(pattern)) {}

  enum class Stream { kOut, kErr };
  // Bytes as they came from the pipe, in any pieces. A line ends with \n or \r.
  void Add(Stream stream, std::string_view bytes, TimePoint now);
  // With what was put off until `now`.
  const RankProgress& At(TimePoint now);

 private:
  void TakeLine(std::string_view line, TimePoint now);
  void Read(std::string_view line, TimePoint came);
  void BeginWindow(TimePoint now);

  std::shared_ptr<const ProgressPattern> pattern_;
  RankProgress progress_;
  std::array<std::string, 2> partial_;  // the line of each stream that has not ended; at most kMaxProgressLine bytes
  TimePoint window_{};                  // its begin
  int lines_ = 0;                       // read in the window
  std::string put_off_;                 // the newest line of the window that was not read
  TimePoint put_off_came_{};
};

}  // namespace muster::agent

// SPDX-License-Identifier: Apache-2.0
// libFuzzer: the output of a worker, which may tell of its progress: as one line, and as a stream in pieces.
#include "agent/progress/progress_line.h"
#include "agent/progress/progress_reader.h"
#include "tests/fuzz/input.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  muster::agent::ProgressReader reader;
  muster::TimePoint now{};
  for (std::string_view rest = text; !rest.empty(); rest.remove_prefix(std::min<size_t>(rest.size(), 7))) {
    reader.Add(muster::agent::ProgressReader::Stream::kOut, rest.substr(0, 7), now += std::chrono::milliseconds(9));
  }
  const muster::agent::RankProgress& progress = reader.At(now += std::chrono::hours(1));
  Must(!progress.position() || *progress.position() >= 0);
  Must(!progress.left() || *progress.left() >= muster::Duration{});
  Must(progress.curve().size() <= muster::agent::RankProgress::kMostPoints);

  const auto line = muster::agent::ReadProgressLine(text);
  if (!line) return 0;
  Must(line->step || line->epoch || line->loss);
  Must(!line->step || (*line->step >= 0 && *line->step <= muster::agent::kMaxSteps));
  Must(!line->steps || (*line->steps > 0 && *line->steps <= muster::agent::kMaxSteps));
  Must(!line->epoch || (*line->epoch >= 0 && *line->epoch <= muster::agent::kMaxEpochs));
  Must(!line->epochs || (*line->epochs > 0 && *line->epochs <= muster::agent::kMaxEpochs));
  return 0;
}

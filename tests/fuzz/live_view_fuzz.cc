// SPDX-License-Identifier: Apache-2.0
// libFuzzer: an agent's answer to `muster top`.
#include "agent/live/live_view.h"
#include "tests/fuzz/input.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace muster;
  using namespace muster::agent;
  const auto view = ParseLiveView({reinterpret_cast<const char*>(data), size});
  MustBeTold(view.status());
  if (!view.ok()) return 0;
  Must(!Sentence(*view).empty());
  Must(WarningsOf(*view).size() <= 20);
  const LivePace pace = PaceOf(view->report);
  Must(!pace.left || *pace.left >= Duration{});
  Must(!pace.slow || pace.slow->step_time >= pace.slow->others);
  const LiveTime time = TimeOf(view->report);
  Must(!time.goodput || (*time.goodput >= 0 && *time.goodput <= 1.000001));
  // What was read can be told again.
  const auto again = ParseLiveView(ToJson(*view));
  Must(again.ok());
  Must(again->report.nodes.size() == view->report.nodes.size());
  return 0;
}

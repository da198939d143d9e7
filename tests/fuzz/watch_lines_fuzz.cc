// SPDX-License-Identifier: Apache-2.0
// libFuzzer: the body of a watch. The first byte gives the length of the pieces in which it arrives. The pieces must
// not change the lines. An informer must be synced after the lines.
#include "base/text.h"
#include "controller/kube/client/informer_state.h"
#include "controller/kube/client/watch_lines.h"
#include "tests/fuzz/input.h"

namespace muster::controller {
namespace {

constexpr size_t kLongest = 1000;

std::vector<std::string> LinesOf(std::string_view body, size_t piece) {
  WatchLines lines(kLongest);
  std::vector<std::string> got;
  for (; !body.empty(); body.remove_prefix(std::min(piece, body.size()))) {
    lines.Take(body.substr(0, piece), [&](std::string_view line, bool whole) {
      Must(!line.empty() && line.size() <= kLongest && line.find('\n') == std::string_view::npos);
      got.push_back(std::string(line) + (whole ? "" : "\n"));
      return true;
    });
  }
  return got;
}

// `streams`: the lines begin a stream.
void Follow(const std::vector<std::string>& lines, bool streams) {
  InformerState state(kPods);
  state.Begin();
  if (!streams) state.Listed(Json{{"metadata", {{"resourceVersion", "1"}}}});
  for (const std::string& line : lines) {
    const bool whole = !line.ends_with('\n');
    const auto actions = state.Line(whole ? line : line.substr(0, line.size() - 1), whole);
    for (const InformerAction& action : actions) {
      if (action.kind == InformerAction::Kind::kPut) Must(action.object.is_object());
      const bool ends = action.kind == InformerAction::Kind::kPause || action.kind == InformerAction::Kind::kList ||
                        action.kind == InformerAction::Kind::kStream;
      if (!ends) continue;
      Must(&action == &actions.back());
      if (action.kind == InformerAction::Kind::kPause) state.Resume();
      streams = false;
      state.Listed(Json{{"metadata", {{"resourceVersion", "2"}}}});
    }
  }
  Must(streams || state.synced());
}

}  // namespace
}  // namespace muster::controller

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace muster::controller;
  const auto [choice, text] = Choose(data, size);
  const auto whole = LinesOf(text, SIZE_MAX);
  Must(LinesOf(text, 1 + choice) == whole);
  for (const bool streams : {false, true}) Follow(whole, streams);
  return 0;
}

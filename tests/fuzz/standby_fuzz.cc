// SPDX-License-Identifier: Apache-2.0
// libFuzzer: what a worker's Python sends to the agent, and the files that keep what scripts import. The first byte is
// where the bytes are cut. Cuts must not change the frames.
#include <algorithm>
#include <vector>

#include "agent/standby/frames.h"
#include "agent/standby/kept_imports.h"
#include "agent/standby/plan.h"
#include "tests/fuzz/input.h"

namespace muster::agent::standby {
namespace {

// The frames of `text`, which comes in pieces of `piece` bytes, and at the end the error, if there is one.
std::vector<Frame> Read(std::string_view text, size_t piece) {
  FrameReader reader;
  std::vector<Frame> frames;
  for (; !text.empty(); text.remove_prefix(std::min(piece, text.size()))) {
    reader.Add(text.substr(0, piece));
    for (;;) {
      const auto next = reader.Next();
      if (!next.ok()) {
        MustBeTold(next.status());
        frames.push_back({Letter::kUnfit, std::string(Message(next.status()))});
        return frames;
      }
      if (!*next) break;
      Must((*next)->body.size() <= kLongestBody);
      frames.push_back(**next);
    }
  }
  return frames;
}

}  // namespace
}  // namespace muster::agent::standby

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace muster::agent::standby;
  const ChosenInput input = Choose(data, size);
  const std::vector<Frame> frames = Read(input.text, input.text.size());
  Must(Read(input.text, size_t{1} + input.choice) == frames);
  Imports imports;
  for (const Frame& frame : frames) {
    for (const std::string& name : SplitParts(frame.body)) imports.Add(name);
    (void)ParseScriptFacts(frame.body);
  }
  const std::string versions(64, 'a');
  Must(ParseKeptImports(FormatKeptImports(versions, imports.names()), versions) == imports.names());
  (void)ParseKeptImports(input.text, versions);
  return 0;
}

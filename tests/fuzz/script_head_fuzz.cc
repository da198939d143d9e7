// SPDX-License-Identifier: Apache-2.0
// libFuzzer: the head of a console script.
#include "agent/workers/script_head.h"
#include "tests/fuzz/input.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using muster::agent::ScriptHead;
  const ScriptHead head = muster::agent::ReadScriptHead({reinterpret_cast<const char*>(data), size});
  Must((head.place == ScriptHead::Place::kNone) == head.python.empty());
  Must(head.python.size() <= size && head.python.find('\n') == std::string::npos);
  return 0;
}

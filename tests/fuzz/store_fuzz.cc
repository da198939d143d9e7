// SPDX-License-Identifier: Apache-2.0
// libFuzzer: requests of two connections on one key space of the store. The first byte gives the size of the pieces in
// which the rest arrives. The pieces and the whole must give the same results, and no bound may be exceeded.
#include <string>
#include <vector>

#include "rendezvous/store/commands.h"
#include "tests/fuzz/input.h"

namespace muster::store {
namespace {

// One text with everything that a server would have sent, and how the connection ended.
std::string Play(std::string_view bytes, size_t step) {
  KeySpace keys;
  Parser parser;
  Request request;
  Buffer spare;
  std::string told;
  while (!bytes.empty()) {
    std::string piece(bytes.substr(0, step));
    bytes.remove_prefix(piece.size());
    std::string_view input = piece;
    for (;;) {
      Parser::Result result = parser.Next(&input, &request);
      if (result == Parser::Result::kNeedMore) {
        Must(input.empty());
        break;
      }
      if (result == Parser::Result::kForeign) return told + "foreign";
      if (result == Parser::Result::kViolation) return told + "violation: " + request.why;
      // The number of arguments chooses one of two connections, so that one changes keys for which the other waits.
      Output output;
      const char* why = Execute(&request, request.args.size() % 2, &keys, &output);
      if (*why != 0) return told + "close: " + why;
      Must(output.bytes.size() + output.tail.size() <= kMaxAnswer + 16);
      told.append(output.bytes).append(output.tail);
      for (WaiterId id : output.woken) told += "wake" + std::to_string(id);
      for (const Event& event : output.events) told += "event" + std::to_string(event.to) + event.bytes;
      Must(keys.waiters() <= 2 && keys.size() >= 0);
    }
    std::span<char> tail = parser.Tail(&spare);
    Must(tail.size() <= kMaxRequest);
  }
  keys.Forget(0);
  keys.Forget(1);
  Must(keys.waiters() == 0);
  return told;
}

void FuzzStore(std::string_view input) {
  if (input.empty()) return;
  size_t step = static_cast<uint8_t>(input[0]) + 1u;
  input.remove_prefix(1);
  std::string pieces = Play(input, step);
  // The meaning of an old client's byte 8 depends on the rest of its piece. So only clients with the magic must agree.
  bool validated = input.size() >= 5 && input.substr(0, 5) == std::string_view("\x00\xCE\xF7\x85\x3C", 5);
  if (validated) Must(pieces == Play(input, input.size() + 1));
}

}  // namespace
}  // namespace muster::store

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  muster::store::FuzzStore({reinterpret_cast<const char*>(data), size});
  return 0;
}

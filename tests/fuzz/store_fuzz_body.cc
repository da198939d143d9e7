#include <cstdlib>
#include <string>
#include <vector>

#include "rendezvous/store/commands.h"
#include "tests/fuzz/store_fuzz.h"

namespace muster::store {
namespace {

void Check(bool holds) {
  if (!holds) std::abort();
}

// Everything a server would have sent, as one text, and how it ended.
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
        Check(input.empty());
        break;
      }
      if (result == Parser::Result::kForeign) return told + "foreign";
      if (result == Parser::Result::kViolation) return told + "violation: " + request.why;
      // Two connections take turns, so that waits meet changes.
      Output output;
      const char* why = Execute(&request, request.args.size() % 2, &keys, &output);
      if (*why != 0) return told + "close: " + why;
      Check(output.bytes.size() + output.tail.size() <= kMaxAnswer + 16);
      told.append(output.bytes).append(output.tail);
      for (WaiterId id : output.woken) told += "wake" + std::to_string(id);
      for (const Event& event : output.events) told += "event" + std::to_string(event.to) + event.bytes;
      Check(keys.waiters() <= 2 && keys.size() >= 0);
    }
    std::span<char> tail = parser.Tail(&spare);
    Check(tail.size() <= kMaxRequest);
  }
  keys.Forget(0);
  keys.Forget(1);
  Check(keys.waiters() == 0);
  return told;
}

}  // namespace

void FuzzStore(std::string_view input) {
  if (input.empty()) return;
  size_t step = static_cast<uint8_t>(input[0]) + 1u;
  input.remove_prefix(1);
  std::string pieces = Play(input, step);
  // An old client's 8 is read by what follows it in the same piece; only for the others whole and pieces must agree.
  bool validated = input.size() >= 5 && input.substr(0, 5) == std::string_view("\x00\xCE\xF7\x85\x3C", 5);
  if (validated) Check(pieces == Play(input, input.size() + 1));
}

}  // namespace muster::store

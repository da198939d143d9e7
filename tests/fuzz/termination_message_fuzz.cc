// SPDX-License-Identifier: Apache-2.0
// libFuzzer: the termination message, read from a pod, or made from a worker's bytes.
#include <iterator>

#include "base/termination_message.h"
#include "base/text.h"
#include "tests/fuzz/input.h"

namespace muster {
namespace {

// Checks that any message is written as one line within the limit, can be read, and stays the same then.
void CheckEncoding(const TerminationMessage& message, size_t limit) {
  std::string line = EncodeTerminationMessage(message, limit);
  Must(line.size() <= limit && line.find('\n') == std::string::npos);
  auto back = ParseTerminationMessage(line);
  Must(back.ok() && back->exit_code == message.exit_code && back->exit_class == message.exit_class);
  Must(EncodeTerminationMessage(*back, limit) == line);
}

// The bytes of a worker: fields that end with NUL.
TerminationMessage OfAWorker(std::string_view bytes) {
  TerminationMessage message{.exit_code = 139, .exit_class = ExitClass::kRetryable, .node_rank = 0, .round = 1};
  WorkerFailure& cause = message.cause.emplace();
  cause.exit_code = 139;
  cause.signal = 11;
  std::string* texts[] = {&message.reason, &cause.message, &cause.error_file, &cause.node,
                          &cause.host,     &message.node,  &message.host,     &message.run_id};
  size_t at = 0;
  for (std::string_view part : Split(bytes, '\0')) {
    if (at < std::size(texts)) {
      *texts[at++] = part;
    } else {
      cause.stderr_tail.emplace_back(part);
    }
  }
  if (cause.stderr_tail.size() > 20) cause.stderr_tail.resize(20);
  return message;
}

}  // namespace
}  // namespace muster

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  std::string_view bytes(reinterpret_cast<const char*>(data), size);
  auto message = muster::ParseTerminationMessage(bytes);
  constexpr size_t kLimits[] = {muster::kMaxTerminationMessage, muster::kMinTerminationMessage, 256, 1024};
  const size_t limit = kLimits[size % std::size(kLimits)];
  if (message.ok()) muster::CheckEncoding(*message, limit);
  muster::CheckEncoding(muster::OfAWorker(bytes), limit);
  return 0;
}

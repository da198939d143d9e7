// SPDX-License-Identifier: Apache-2.0
// The termination message: one line of JSON that the agent writes to /dev/termination-log (terminationMessagePath). The
// controller reads it as status.containerStatuses[].state.terminated.message; `muster report` reads it too.
// docs/termination-message.md has the keys and an example per class. Keys that attempt.json also has have the same
// names there.
//
// Kubernetes keeps 4,096 bytes per container and 12 KiB per pod, divided evenly: 12 containers get 1 KiB each. It reads
// the file once, after the container has ended; the file is a bind mount.
//
// The functions have no state, so any thread may call them.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "base/exit_codes.h"
#include "base/run_facts.h"
#include "base/status.h"
#include "base/worker_failure.h"

namespace muster {

inline constexpr char kTerminationLog[] = "/dev/termination-log";         // Kubernetes' default path
inline constexpr size_t kMaxTerminationMessage = 4096;                    // bytes; what Kubernetes keeps
inline constexpr size_t kMinTerminationMessage = 128;                     // bytes; the code and its class always fit
inline constexpr size_t kMaxParsedTerminationMessage = size_t{64} << 10;  // bytes; Muster never writes a longer text

// Start of the reason if a pod ended because its job's launcher told it how the job had ended.
inline constexpr char kVerdictReason[] = "the launcher's verdict: ";

struct TerminationMessage {
  int version = 1;    // of the schema: changes with the meaning of a key, not when a key is added
  int exit_code = 0;  // 0..255, what the container ends with
  ExitClass exit_class = ExitClass::kSuccess;  // of exit_code, with the job's --retry-codes and --fatal-codes
  std::string reason;                          // one plain sentence
  std::string run_id;
  std::string node;  // stable name of the node that writes
  std::string host;  // its host name
  std::optional<int> node_rank;
  std::optional<int64_t> round;
  int restart_count = 0;     // charged so far
  int max_restarts = 0;      // the budget
  bool budget_used = false;  // the job ended because its budget is used up; with another budget it would have gone on
  // Exit code of the run inside the command (`sh -c "torchrun ..."`), if the command ended with another code.
  std::optional<int> inner_exit_code;
  // The job's root cause, on any node. After a success: the last failure that a restart repaired, or the failure that
  // the command's code hides.
  std::optional<WorkerFailure> cause;
  std::optional<RunTime> time;            // of the agent that writes
  std::optional<TrainingFacts> training;  // of the workers on this node
  bool truncated = false;                 // something was cut to make it fit
  bool operator==(const TerminationMessage&) const = default;
};

// Returns one line without a newline. It is valid UTF-8 and valid JSON for any bytes of a worker (a byte that is not
// UTF-8 becomes U+FFFD). It is never longer than `limit` bytes, or kMinTerminationMessage if that is more. Empty texts,
// unknown ranks, zeros and false are left out.
//
// If it is too long, fields are cut in this order, each only as far as needed, and "truncated" is set:
//   1. cause.stderr_tail: its oldest lines; the newest stays
//   2. cause.error_message: lines from its middle, until a quarter of the limit is left. Its first and its last lines
//      stay: a traceback ends with the exception
//   3. cause.stderr_tail: the end of the newest line
//   4. cause.error_file: as a whole, since half a path is useless
//   5. reason: its end, until a quarter of the limit is left
//   6. training, time: as a whole
//   7. cause.stderr_reason, cause.ended_unix_ms, cause.pid, cause.host, host, run_id: as a whole
//   8. cause.error_message: all the rest
//   9. node, cause.node: as a whole (a controller knows whose message it reads)
//  10. cause
//  11. reason: all the rest
//  12. node_rank, round, restart_count, max_restarts, budget_used, inner_exit_code
// A cut text has an ellipsis (U+2026).
std::string EncodeTerminationMessage(const TerminationMessage& message, size_t limit = kMaxTerminationMessage);

// Safe for untrusted input. InvalidArgument: longer than kMaxParsedTerminationMessage, no JSON object, one of
// "version", "exit_code" and "class" missing, a wrong type or a number out of range (the message names the key).
// Unknown keys are ignored, so a newer version can be read. A null value counts as missing. Only the newest 20 lines of
// stderr_tail are kept.
StatusOr<TerminationMessage> ParseTerminationMessage(std::string_view text);

// Overwrites the file `path` with `line`. Never renames a file over it (it is a bind mount) and never creates it. Does
// not block. Call it once, as the last step before the exit.
//
// NotFound: there is no such file, so this is not Kubernetes and the caller stays silent. Any other error (read-only, a
// directory, a pipe, a full disk) names the path and says that the exit code still holds. After a failed write the file
// is empty, not half a line, so that Kubernetes' FallbackToLogsOnError still works. If RLIMIT_FSIZE is set, SIGXFSZ
// must be ignored or blocked.
Status WriteTerminationMessage(const std::string& path, std::string_view line);

// Content of the regular file `path`, at most kMaxParsedTerminationMessage + 1 bytes; empty if there is none.
std::string ReadTerminationText(const std::string& path);

}  // namespace muster

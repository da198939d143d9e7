// The termination message: what a pod leaves for its controller in /dev/termination-log (terminationMessagePath), seen
// as status.containerStatuses[].state.terminated.message. One line of JSON; the agent writes it, the controller and
// `muster report` read it. docs/termination-message.md has the keys and an example per class; keys that attempt.json
// has too have its names.
//
// Kubernetes keeps 4,096 bytes per container and 12 KiB per pod, divided evenly: 12 containers get 1 KiB each. It reads
// the file once, after the container has ended; the file is a bind mount.
//
// Functions without state: any thread.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "base/exit_codes.h"
#include "base/status.h"
#include "base/worker_failure.h"

namespace muster {

inline constexpr char kTerminationLog[] = "/dev/termination-log";         // Kubernetes' default path
inline constexpr size_t kMaxTerminationMessage = 4096;                    // bytes; what Kubernetes keeps
inline constexpr size_t kMinTerminationMessage = 128;                     // bytes; the code and its class always fit
inline constexpr size_t kMaxParsedTerminationMessage = size_t{64} << 10;  // bytes; a longer text is none of ours

// How the reason begins of a pod that ended only since its job's launcher told it how the job had ended.
inline constexpr char kVerdictReason[] = "the launcher's verdict: ";

struct TerminationMessage {
  int version = 1;    // of the schema: a new key does not change it, a new meaning of an old key does
  int exit_code = 0;  // 0..255, what the container ends with
  ExitClass exit_class = ExitClass::kSuccess;  // of exit_code, with the job's --retry-codes and --fatal-codes
  std::string reason;                          // one plain sentence
  std::string run_id;
  std::string node;  // stable name of the node that writes
  std::string host;  // its host name
  std::optional<int> node_rank;
  std::optional<int64_t> round;
  int restart_count = 0;  // charged so far
  int max_restarts = 0;   // the budget
  // What the run inside the command (`sh -c "torchrun ..."`) ended with, where the command made another code of it.
  std::optional<int> inner_exit_code;
  // The job's root cause, on whatever node it was. After a success: the last failure that a restart got over, or the one
  // that the command's code hides.
  std::optional<WorkerFailure> cause;
  bool truncated = false;              // something was cut to make it fit
  bool operator==(const TerminationMessage&) const = default;
};

// One line without its newline: valid UTF-8 and valid JSON whatever bytes came from a worker (a byte that is no UTF-8
// becomes U+FFFD), never longer than `limit` bytes (a limit below kMinTerminationMessage counts as that). Empty texts,
// unknown ranks, zeros and false are left out.
//
// What does not fit is cut in this order, each only as far as needed, and "truncated" is set:
//   1. cause.stderr_tail: its oldest lines; the newest stays
//   2. cause.error_message: lines from its middle, until a quarter of the limit is left. Its first and its last lines
//      stay: a traceback ends with the exception
//   3. cause.stderr_tail: the end of the newest line
//   4. cause.error_file: as a whole, half a path is of no use
//   5. reason: its end, until a quarter of the limit is left
//   6. cause.ended_unix_ms, cause.pid, cause.host, host, run_id: as a whole
//   7. cause.error_message: all the rest
//   8. node, cause.node: as a whole (a controller knows whose message it reads)
//   9. cause
//  10. reason: all the rest
//  11. node_rank, round, restart_count, max_restarts, inner_exit_code
// A text that was cut shows it by an ellipsis (U+2026).
std::string EncodeTerminationMessage(const TerminationMessage& message, size_t limit = kMaxTerminationMessage);

// Trusts nobody. InvalidArgument: longer than kMaxParsedTerminationMessage, no JSON object, one of "version",
// "exit_code" and "class" missing, a wrong type or a number out of range (the message names the key). Unknown keys are
// ignored, and what is null counts as missing; a newer version is read for the keys that this one knows. Of more than
// 20 lines of stderr_tail the newest are kept.
StatusOr<TerminationMessage> ParseTerminationMessage(std::string_view text);

// Writes `line` in place of what `path` holds: never renamed over (it is a bind mount), never created. Does not block:
// call it once, as the last thing before the exit.
//
// NotFound: there is no such file; not under Kubernetes, so stay silent. Any other error (read-only, a directory, no
// file that keeps what is written, full disk) names the path and says that the exit code still holds; after it the file
// is empty rather than half a line, so that Kubernetes' FallbackToLogsOnError still works. Where RLIMIT_FSIZE is set,
// SIGXFSZ must be ignored or blocked.
Status WriteTerminationMessage(const std::string& path, std::string_view line);

// What a regular file at `path` holds, at most kMaxParsedTerminationMessage + 1 bytes; empty where there is none.
std::string ReadTerminationText(const std::string& path);

}  // namespace muster

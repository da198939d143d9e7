// SPDX-License-Identifier: Apache-2.0
// Meanings of exit codes. docs/exit-codes.md has the same table.
//
// Classes: 0 success; 1-127 fatal (a bug or a wrong setting: a retry fails again); 128-255 retryable (signals, OOM
// kill, preemption, infrastructure). A process killed by signal n counts as 128 + n.
#pragma once

#include <optional>
#include <set>
#include <string>
#include <string_view>

#include "base/status.h"

namespace muster {

enum class ExitClass { kSuccess, kFatal, kRetryable };

inline constexpr int kExitUsage = 64;               // a flag or PET_* value is wrong
inline constexpr int kExitBadConfiguration = 78;    // settings that contradict each other or the cluster
inline constexpr int kExitDrillMissed = 92;         // `muster local`: the job succeeded, but a drill did not happen
inline constexpr int kExitNoProgress = 93;          // restarted K times without progress: do not requeue
inline constexpr int kExitNotExecutable = 126;      // the command exists and cannot be executed
inline constexpr int kExitNotFound = 127;           // the command does not exist
inline constexpr int kExitStopped = 143;            // asked to stop (SIGTERM)
inline constexpr int kExitRendezvousTimeout = 200;  // too few nodes, or no coordinator, within join_timeout
inline constexpr int kExitCoordinatorLost = 201;    // no coordinator could be reached again in time
inline constexpr int kExitPeerFailed = 202;         // a peer failed with an unknown code; own workers were healthy
inline constexpr int kExitHang = 203;               // no progress was seen for the hang timeout
inline constexpr int kExitNodeUnhealthy = 204;      // the node check failed, or the machine lacks what a start needs
inline constexpr int kExitSourceUnreachable = 205;  // the source of a data set or model failed until retries ran out
// muster-controller: another replica may hold the Lease now. Started again, it waits for the Lease.
inline constexpr int kExitLeaseLost = kExitRendezvousTimeout;

// Codes whose class --retry-codes and --fatal-codes change. The flag parser refuses a code that is in both.
struct ExitCodeOverrides {
  std::set<int> retry;
  std::set<int> fatal;
};

// Class of `code` (0..255).
ExitClass Classify(int code, const ExitCodeOverrides& overrides = {});

// Where the cause of a node's end is, as far as its code says.
enum class CauseIn {
  kNode,
  kRendezvous,  // 200, 201: it gave up the rendezvous by itself, and does not know how the others are
  kPeer         // 202: a consequence of a peer's failure
};
CauseIn WhereCauseIs(int code);

// "success" | "fatal" | "retryable".
std::string_view ExitClassName(ExitClass exit_class);
std::optional<ExitClass> ParseExitClass(std::string_view name);

// One phrase for a code: "rendezvous not reached in time (exit code 200)", "exit code 3", "exit code 137 (128 +
// SIGKILL)". It does not say "killed by": a shell or mpirun exits with 137 when another process was killed.
std::string DescribeExit(int code);

// "killed by SIGKILL" if `signal` is not 0, else DescribeExit(code).
std::string DescribeEnd(int code, int signal);

// Text for a worker that failed while the kernel's OOM killer was active. "out of memory" for exit code 137 (SIGKILL,
// or a shell that reports it); otherwise says that a process that the worker had started was killed.
std::string_view DescribeOom(int exit_code);

// "SIGTERM" for 15; "signal 99" if the number has no name.
std::string SignalName(int signal);

// Number (1-64, all that Linux has) of a signal given as "TERM", "SIGTERM", "15" or as SignalName writes it.
// InvalidArgument names the text.
StatusOr<int> ParseSignal(std::string_view text);

// "130,137-139" -> set. InvalidArgument names the part that is not a code from 1 to 255.
StatusOr<std::set<int>> ParseExitCodes(std::string_view text);

}  // namespace muster

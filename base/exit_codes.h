// Exit codes: the one place that says what a code means. docs/exit-codes.md holds the same table.
//
// Classes: 0 success; 1-127 fatal (a bug or a wrong setting: trying again gives the same); 128-255 retryable
// (signals, OOM kill, preemption, infrastructure). A process killed by signal n counts as 128 + n.
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
inline constexpr int kExitNoProgress = 93;          // restarted K times without progress: do not requeue
inline constexpr int kExitNotExecutable = 126;      // the command exists and cannot be executed
inline constexpr int kExitNotFound = 127;           // the command does not exist
inline constexpr int kExitStopped = 143;            // asked to stop (SIGTERM)
inline constexpr int kExitRendezvousTimeout = 200;  // too few nodes, or no coordinator, within join_timeout
inline constexpr int kExitCoordinatorLost = 201;    // no coordinator could be reached again in time
inline constexpr int kExitPeerFailed = 202;         // a peer failed and its code is not known; own workers were healthy
inline constexpr int kExitHang = 203;               // no progress was seen for the hang timeout
inline constexpr int kExitNodeUnhealthy = 204;      // the node check failed, or the machine lacks what a start needs
inline constexpr int kExitSourceUnreachable = 205;  // a data set's or a model's source failed until patience was over

// Single codes moved to the other class by --retry-codes and --fatal-codes. A code in both is refused by the parser.
struct ExitCodeOverrides {
  std::set<int> retry;
  std::set<int> fatal;
};

// Class of `code` (0..255).
ExitClass Classify(int code, const ExitCodeOverrides& overrides = {});

// "success" | "fatal" | "retryable".
std::string_view ExitClassName(ExitClass exit_class);
std::optional<ExitClass> ParseExitClass(std::string_view name);

// One plain phrase for a code: "rendezvous not reached in time (exit code 200)", "exit code 3", "exit code 137 (128 +
// SIGKILL)". A code alone does not say that a signal came: a shell or mpirun that ends with 137 speaks of another one's
// end.
std::string DescribeExit(int code);

// The same for a process whose end is known: "killed by SIGKILL" where `signal` is not 0.
std::string DescribeEnd(int code, int signal);

// Of a failure in whose time the kernel killed for memory: "out of memory" where that was its own end (137: SIGKILL, or
// a shell's word for it), else that a process it had started was killed.
std::string_view DescribeOom(int exit_code);

// "SIGTERM" for 15; "signal 99" where the number has no name.
std::string SignalName(int signal);

// Number (1-64: Linux has no others) of a signal given as "TERM", "SIGTERM", "15", or as SignalName writes it;
// InvalidArgument names the text.
StatusOr<int> ParseSignal(std::string_view text);

// "130,137-139" -> set; InvalidArgument names the part that is no code in 1..255.
StatusOr<std::set<int>> ParseExitCodes(std::string_view text);

}  // namespace muster

#include "base/exit_codes.h"

#include <csignal>
#include <cstring>

#include "base/text.h"

namespace muster {

ExitClass Classify(int code, const ExitCodeOverrides& overrides) {
  if (code == 0) return ExitClass::kSuccess;
  if (overrides.retry.contains(code)) return ExitClass::kRetryable;
  if (overrides.fatal.contains(code)) return ExitClass::kFatal;
  return code >= 128 ? ExitClass::kRetryable : ExitClass::kFatal;
}

std::string_view ExitClassName(ExitClass exit_class) {
  switch (exit_class) {
    case ExitClass::kSuccess:
      return "success";
    case ExitClass::kFatal:
      return "fatal";
    case ExitClass::kRetryable:
      return "retryable";
  }
  return "unknown";
}

std::optional<ExitClass> ParseExitClass(std::string_view name) {
  for (ExitClass known : {ExitClass::kSuccess, ExitClass::kFatal, ExitClass::kRetryable}) {
    if (name == ExitClassName(known)) return known;
  }
  return std::nullopt;
}

std::string DescribeExit(int code) {
  switch (code) {
    case 0:
      return "success";
    case kExitUsage:
      return "wrong usage (exit code 64)";
    case kExitBadConfiguration:
      return "bad configuration (exit code 78)";
    case kExitDrillMissed:
      return "a drill did not happen (exit code 92)";
    case kExitNoProgress:
      return "no progress over several restarts (exit code 93)";
    case kExitNotExecutable:
      return "command is not executable (exit code 126)";
    case kExitNotFound:
      return "command not found (exit code 127)";
    case kExitRendezvousTimeout:
      return "rendezvous not reached in time (exit code 200)";
    case kExitCoordinatorLost:
      return "coordinator lost (exit code 201)";
    case kExitPeerFailed:
      return "a peer failed (exit code 202)";
    case kExitHang:
      return "hang (exit code 203)";
    case kExitNodeUnhealthy:
      return "node unhealthy (exit code 204)";
    case kExitSourceUnreachable:
      return "source unreachable (exit code 205)";
    default:
      break;
  }
  if (code > 128 && code < 128 + SIGRTMAX && sigabbrev_np(code - 128) != nullptr) {
    return fmt::format("exit code {} (128 + {})", code, SignalName(code - 128));
  }
  return fmt::format("exit code {}", code);
}

std::string DescribeEnd(int code, int signal) {
  return signal != 0 ? fmt::format("killed by {}", SignalName(signal)) : DescribeExit(code);
}

std::string_view DescribeOom(int exit_code) {
  return exit_code == 128 + SIGKILL ? "out of memory" : "a process that it started was killed: out of memory";
}

std::string SignalName(int signal) {
  const char* name = sigabbrev_np(signal);
  if (name == nullptr) return fmt::format("signal {}", signal);
  return fmt::format("SIG{}", name);
}

StatusOr<int> ParseSignal(std::string_view text) {
  constexpr std::string_view kNameless = "SIGNAL ";
  std::string name = Upper(Strip(text));
  if (name.starts_with(kNameless)) name.erase(0, kNameless.size());
  if (auto number = ParseInt(name); number && *number > 0 && *number <= SIGRTMAX) return static_cast<int>(*number);
  if (name.starts_with("SIG")) name.erase(0, 3);
  for (int number = 1; number < SIGRTMIN; ++number) {
    const char* known = sigabbrev_np(number);
    if (known != nullptr && name == known) return number;
  }
  return absl::InvalidArgumentError(fmt::format("'{}' is no signal; use a name such as SIGTERM or a number", text));
}

StatusOr<std::set<int>> ParseExitCodes(std::string_view text) {
  std::set<int> codes;
  for (std::string_view part : Split(text, ',')) {
    part = Strip(part);
    if (part.empty()) continue;
    size_t dash = part.find('-');
    auto first = ParseInt(part.substr(0, dash));
    auto last = dash == std::string_view::npos ? first : ParseInt(part.substr(dash + 1));
    if (!first || !last || *first < 1 || *last > 255 || *first > *last) {
      return absl::InvalidArgumentError(
          fmt::format("'{}' is no exit code or range; use numbers from 1 to 255 such as 3,130-139", part));
    }
    for (int64_t code = *first; code <= *last; ++code) codes.insert(static_cast<int>(code));
  }
  return codes;
}

}  // namespace muster

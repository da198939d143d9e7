// SPDX-License-Identifier: Apache-2.0
#include "base/exit_codes.h"

#include <algorithm>
#include <csignal>
#include <cstring>
#include <iterator>

#include "base/text.h"

namespace muster {
namespace {

struct ExitCode {
  int code;  // Classify() says its class
  std::string_view phrase;
  CauseIn cause = CauseIn::kNode;
};

constexpr ExitCode kCodes[] = {
    {kExitUsage, "wrong usage"},
    {kExitBadConfiguration, "bad configuration"},
    {kExitDrillMissed, "a drill did not happen"},
    {kExitNoProgress, "no progress over several restarts"},
    {kExitNotExecutable, "command is not executable"},
    {kExitNotFound, "command not found"},
    {kExitRendezvousTimeout, "rendezvous not reached in time", CauseIn::kRendezvous},
    {kExitCoordinatorLost, "coordinator lost", CauseIn::kRendezvous},
    {kExitPeerFailed, "a peer failed", CauseIn::kPeer},
    {kExitHang, "hang"},
    {kExitNodeUnhealthy, "node unhealthy"},
    {kExitSourceUnreachable, "source unreachable"},
};

const ExitCode* Find(int code) {
  const auto found =
      std::find_if(std::begin(kCodes), std::end(kCodes), [code](const ExitCode& known) { return known.code == code; });
  return found == std::end(kCodes) ? nullptr : found;
}

}  // namespace

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

CauseIn WhereCauseIs(int code) {
  const ExitCode* known = Find(code);
  return known == nullptr ? CauseIn::kNode : known->cause;
}

std::string DescribeExit(int code) {
  if (code == 0) return "success";
  if (const ExitCode* known = Find(code)) return fmt::format("{} (exit code {})", known->phrase, code);
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
  return absl::InvalidArgumentError(fmt::format("'{}' is not a signal; use a name such as SIGTERM or a number", text));
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
          fmt::format("'{}' is not an exit code or range; use numbers from 1 to 255 such as 3,130-139", part));
    }
    for (int64_t code = *first; code <= *last; ++code) codes.insert(static_cast<int>(code));
  }
  return codes;
}

}  // namespace muster

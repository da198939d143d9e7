// SPDX-License-Identifier: Apache-2.0
#include "local/drills.h"

#include <vector>

#include "base/exit_codes.h"
#include "base/quoted.h"
#include "base/text.h"

namespace muster::local {
namespace {

constexpr int kMostNumber = 1'000'000, kMostCode = 255;
constexpr int64_t kMostTime = 1'000'000'000;  // ms

std::optional<Duration> TimeIn(std::string_view text) {
  const size_t digits = text.find_first_not_of("0123456789");
  if (digits == 0 || digits == std::string_view::npos) return std::nullopt;
  const auto number = ParseInt(text.substr(0, digits));
  const std::string_view unit = text.substr(digits);
  const int64_t factor = unit == "ms" ? 1 : unit == "s" ? 1000 : unit == "m" ? 60'000 : 0;
  if (!number || factor == 0 || *number > kMostTime / factor) return std::nullopt;
  return std::chrono::milliseconds(*number * factor);
}

}  // namespace

StatusOr<Drill> ParseDrill(std::string_view text) {
  const auto wrong = [text](std::string_view why) {
    return absl::InvalidArgumentError(
        fmt::format("--kill {}: {}; want node:1@30s, or rank:3@TEXT of a line of output", Quoted(text), why));
  };
  const size_t at = text.find('@');
  if (at == std::string_view::npos) return wrong("it does not say when: @30s, or @TEXT");
  const std::vector<std::string_view> parts = Split(text.substr(0, at), ':');
  if (parts.size() != 2 && parts.size() != 3) return wrong("the part before @ is not TARGET:NUMBER[:ACTION]");
  Drill drill{.said = std::string(text)};
  if (parts[0] != "node" && parts[0] != "rank")
    return wrong(fmt::format("{} is neither node nor rank", Quoted(parts[0])));
  if (parts[0] == "rank") drill.target = Drill::Target::kRank;
  const auto number = ParseInt(parts[1]);
  if (!number || *number < 0 || *number > kMostNumber)
    return wrong(fmt::format("{} is not a number", Quoted(parts[1])));
  drill.number = static_cast<int>(*number);
  constexpr std::string_view kExit = "exit=";
  if (parts.size() == 3 && parts[2].starts_with(kExit)) {
    const auto code = ParseInt(parts[2].substr(kExit.size()));
    if (!code || *code < 0 || *code > kMostCode) {
      return wrong(fmt::format("{} is not an exit code: want exit=0 to exit={}", Quoted(parts[2]), kMostCode));
    }
    drill.action = Drill::Exit{static_cast<int>(*code)};
  } else if (parts.size() == 3 && (parts[2] == "cut" || parts[2] == "mend")) {
    if (drill.target == Drill::Target::kRank) return wrong("only a node can be cut or mended: want node:1:cut");
    drill.action = parts[2] == "cut" ? Drill::Link::kCut : Drill::Link::kMend;
  } else if (parts.size() == 3) {
    const auto signal = ParseSignal(parts[2]);
    if (!signal.ok()) return wrong(Message(signal.status()));
    drill.action = Drill::Signal{*signal};
  }
  const std::string_view when = text.substr(at + 1);
  if (when.empty()) return wrong("it does not say when: @30s, or @TEXT");
  drill.after = TimeIn(when);
  if (!drill.after) drill.text = std::string(when);
  return drill;
}

Status CheckLinks(const Drill& drill, std::string_view why_shared) {
  if (!std::holds_alternative<Drill::Link>(drill.action) || why_shared.empty()) return absl::OkStatus();
  return absl::FailedPreconditionError(
      fmt::format("--kill {}: all hosts share this machine's network, so none has a link to cut: {}",
                  Quoted(drill.said), why_shared));
}

}  // namespace muster::local

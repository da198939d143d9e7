// SPDX-License-Identifier: Apache-2.0
#include "rsh/rsh_arguments.h"

#include <algorithm>

#include "base/text.h"

namespace muster::rsh {
namespace {

constexpr std::string_view kUsage = "usage: muster rsh [options] [user@]HOST COMMAND [ARGUMENT...]";
// Source: OpenSSH 9.2, ssh.c.
constexpr std::string_view kWithValue = "bceilmopBDEFIJLOQRSWw";
constexpr std::string_view kSwitches = "1246afgknqstvxACGKMNTVXYy";
constexpr std::string_view kRefused = "sDGLNOQRWw";
constexpr double kShortestTimeout = 0.001;
constexpr double kLongestTimeout = 31'536'000;

Status Bad(std::string_view argument, std::string_view what) {
  return absl::InvalidArgumentError(fmt::format("'{}': {}", argument, what));
}

class Parser {
 public:
  explicit Parser(const std::vector<std::string>& arguments) : arguments_(arguments) {}

  StatusOr<RshCommand> Parse() {
    MUSTER_RETURN_IF_ERROR(Options());
    if (command_.ask != RshCommand::Ask::kRun) return Asked();
    if (at_ == arguments_.size()) return absl::InvalidArgumentError(fmt::format("no host; {}", kUsage));
    MUSTER_RETURN_IF_ERROR(Host(arguments_[at_++]));
    if (!ended_) MUSTER_RETURN_IF_ERROR(Options());
    if (command_.ask != RshCommand::Ask::kRun) return Asked();
    command_.command = Join({arguments_.begin() + static_cast<ptrdiff_t>(at_), arguments_.end()}, " ");
    if (Strip(command_.command).empty()) {
      return Bad(
          command_.host,
          fmt::format("no command for this host: an interactive login is not offered, use kubectl exec; {}", kUsage));
    }
    return std::move(command_);
  }

 private:
  RshCommand Asked() const {
    RshCommand asked;
    asked.ask = command_.ask;
    return asked;
  }

  Status Options() {
    while (at_ < arguments_.size() && command_.ask == RshCommand::Ask::kRun) {
      const std::string& argument = arguments_[at_];
      if (argument.size() < 2 || argument[0] != '-') break;
      ++at_;
      if (argument == "--") {
        ended_ = true;
        break;
      }
      MUSTER_RETURN_IF_ERROR(argument[1] == '-' ? Long(argument) : Cluster(argument));
    }
    return absl::OkStatus();
  }

  StatusOr<std::string> Next(std::string_view option) {
    if (at_ == arguments_.size()) return Bad(option, "this option needs a value");
    return arguments_[at_++];
  }

  Status Long(const std::string& argument) {
    const size_t equals = argument.find('=');
    const std::string name = argument.substr(0, equals);
    if (argument == "--help") {
      command_.ask = RshCommand::Ask::kHelp;
    } else if (argument == "--version") {
      command_.ask = RshCommand::Ask::kVersion;
    } else if (name == "--rsh-timeout") {
      std::string text;
      if (equals == std::string::npos) {
        MUSTER_ASSIGN_OR_RETURN(text, Next(argument));
      } else {
        text = argument.substr(equals + 1);
      }
      const double seconds = ParseDouble(text).value_or(0);
      if (seconds < kShortestTimeout || seconds > kLongestTimeout) {
        return Bad(fmt::format("{} {}", name, text), "want seconds, at least 0.001 and at most a year");
      }
      command_.timeout = std::chrono::duration_cast<Duration>(std::chrono::duration<double>(seconds));
    } else {
      return Bad(argument, fmt::format("unknown option; {}", kUsage));
    }
    return absl::OkStatus();
  }

  Status Cluster(const std::string& argument) {
    for (size_t at = 1; at < argument.size(); ++at) {
      const char letter = argument[at];
      const std::string option = {'-', letter};
      if (letter == 'h' || letter == 'V') {
        command_.ask = letter == 'h' ? RshCommand::Ask::kHelp : RshCommand::Ask::kVersion;
        return absl::OkStatus();
      }
      if (kRefused.find(letter) != std::string_view::npos) {
        return Bad(argument,
                   fmt::format("{} is not offered: muster rsh runs a command in another pod, no more", option));
      }
      if (kWithValue.find(letter) == std::string_view::npos) {
        if (kSwitches.find(letter) == std::string_view::npos) {
          return Bad(argument, fmt::format("unknown option {}; {}", option, kUsage));
        }
        command_.no_stdin = command_.no_stdin || letter == 'n' || letter == 'f';
        continue;
      }
      std::string value = argument.substr(at + 1);
      if (value.empty()) {
        MUSTER_ASSIGN_OR_RETURN(value, Next(option));
      }
      return Keep(letter, value);
    }
    return absl::OkStatus();
  }

  Status Keep(char letter, const std::string& value) {
    if (letter == 'l') {
      if (value.empty()) return Bad("-l", "the user's name is empty");
      if (command_.user.empty()) command_.user = value;
    } else if (letter == 'p') {
      auto port = ParseInt(value);
      if (!port || *port < 1 || *port > 65535) return Bad("-p " + value, "want a port from 1 to 65535");
      if (!command_.port) command_.port = static_cast<int>(*port);
    }
    return absl::OkStatus();
  }

  Status Host(std::string_view argument) {
    std::string_view host = argument;
    if (size_t at = host.rfind('@'); at != std::string_view::npos) {
      if (at == 0) return Bad(argument, "there is no user before the @");
      if (command_.user.empty()) command_.user = host.substr(0, at);
      host.remove_prefix(at + 1);
    }
    if (host.size() > 2 && host.front() == '[' && host.back() == ']') host = host.substr(1, host.size() - 2);
    auto printable = [](unsigned char c) { return c > 0x20 && c != 0x7f && c != '[' && c != ']' && c != '/'; };
    if (host.empty() || host[0] == '-' || !std::all_of(host.begin(), host.end(), printable)) {
      return Bad(argument, fmt::format("this is not a host name or address; {}", kUsage));
    }
    command_.host = host;
    return absl::OkStatus();
  }

  const std::vector<std::string>& arguments_;
  size_t at_ = 0;
  bool ended_ = false;
  RshCommand command_;
};

}  // namespace

StatusOr<RshCommand> ParseRshArguments(const std::vector<std::string>& arguments) { return Parser(arguments).Parse(); }

}  // namespace muster::rsh

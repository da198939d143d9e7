// SPDX-License-Identifier: Apache-2.0
// The command line of `muster rsh`, which MPI runtimes start in ssh's place: ssh's options, and --rsh-timeout. Pure.
//
//     muster rsh [options] [user@]HOST COMMAND [ARGUMENT...]
//
// Options are read by the rules of OpenSSH 9.2, so that a runtime or an image may add any of them: clusters ("-xq"),
// values joined or apart ("-p2222", "-o X=Y"), options also between host and command, "--" ends them. -p, -l, -n and -f
// have a meaning. Options that ask for something else than the run of a command (-W, -s, -L ...) are refused. The rest
// is ignored: there are no user's keys, no forwarding and no login here.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "base/clock.h"
#include "base/status.h"

namespace muster::rsh {

struct RshCommand {
  enum class Ask { kRun, kHelp, kVersion };  // -h or --help, -V or --version: nothing else is filled in then
  Ask ask = Ask::kRun;
  std::string host;         // a name or a numeric address, without brackets; not empty
  std::string user;         // empty: not given. Has no effect: the remote command runs as the pod's user
  std::optional<int> port;  // 1..65535
  bool no_stdin = false;    // -n or -f: the remote command reads /dev/null
  // The arguments, joined by one blank as ssh does, for the remote `sh -c`. The runtimes quote what must stay one word.
  // Open MPI's first argument begins with a blank. Not empty.
  std::string command;
  std::optional<Duration> timeout;  // --rsh-timeout SECONDS: how long to wait for the pod
  bool operator==(const RshCommand&) const = default;
};

// `arguments`: without the program's name. As in ssh, the first of several users or ports counts.
//
// InvalidArgument names the argument: an unknown or refused option, a missing or wrong value, no host or an impossible
// one, no command (an interactive login is not offered).
StatusOr<RshCommand> ParseRshArguments(const std::vector<std::string>& arguments);

}  // namespace muster::rsh

// The command line of `muster rsh`, which MPI runtimes start in ssh's place: ssh's options, and one of our own. Pure.
//
//     muster rsh [options] [user@]HOST COMMAND [ARGUMENT...]
//
// Options as OpenSSH 9.2's getopt string, so that whatever a runtime or an image adds is read as ssh would read it:
// clusters ("-xq"), values joined or apart ("-p2222", "-o X=Y"), options also between host and command, "--" ends them.
// What they ask for is kept (-p, -l, -n) or ignored on purpose: nothing here is encrypted by keys of a user, forwarded
// or logged in. Those that ask for something else than a command's run (-W, -s, -L ...) are refused.
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
  std::string user;         // empty: not given. The remote command runs as the pod's user, whatever it says
  std::optional<int> port;  // 1..65535
  bool no_stdin = false;    // -n or -f: the remote command reads /dev/null
  // The arguments joined by one blank, as ssh does, for the remote `sh -c`: runtimes quote what must stay whole, and
  // Open MPI's first argument begins with a blank. Not empty.
  std::string command;
  std::optional<Duration> timeout;  // --rsh-timeout SECONDS: how long the peer is waited for
  bool operator==(const RshCommand&) const = default;
};

// `arguments`: without the program's name. As in ssh, the first of several users or ports counts.
//
// InvalidArgument names the argument: an unknown or refused option, a missing or wrong value, no host, a host that none
// can be, no command (an interactive login is not offered).
StatusOr<RshCommand> ParseRshArguments(const std::vector<std::string>& arguments);

}  // namespace muster::rsh

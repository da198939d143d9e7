// SPDX-License-Identifier: Apache-2.0
#include "agent/rsh_here.h"

#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <boost/asio/io_context.hpp>
#include <boost/asio/ip/tcp.hpp>
#include <cerrno>
#include <csignal>
#include <vector>

#include "base/exit_codes.h"
#include "base/host_names.h"
#include "base/print.h"
#include "base/status.h"

namespace muster::agent {
namespace {

using boost::asio::ip::tcp;

bool Listens(const std::string& address, int port) {
  boost::system::error_code error;
  const auto numeric = boost::asio::ip::make_address(address, error);
  if (error) return false;
  boost::asio::io_context loop(1);
  tcp::socket socket(loop);
  socket.connect({numeric, static_cast<uint16_t>(port)}, error);  // this machine answers at once
  return !error;
}

}  // namespace

bool RunsHere(const std::string& host, int port) {
  boost::system::error_code no_address;
  const auto numeric = boost::asio::ip::make_address(host, no_address);
  const MachineNames machine = ThisMachine();
  if (!no_address && numeric.is_loopback()) return false;
  if (!MeansThisMachine(host, machine)) return false;
  std::vector<std::string> addresses = machine.addresses;
  addresses.insert(addresses.end(), {"127.0.0.1", "::1"});
  return std::none_of(addresses.begin(), addresses.end(),
                      [&](const std::string& address) { return Listens(address, port); });
}

int RunHere(const std::string& command, bool no_stdin) {
  if (no_stdin) {
    const int null = open("/dev/null", O_RDONLY | O_CLOEXEC);
    if (null >= 0) dup2(null, STDIN_FILENO);
  }
  signal(SIGPIPE, SIG_DFL);
  execl("/bin/sh", "sh", "-c", command.c_str(), nullptr);
  const int why = errno;
  PrintTo(stderr, "muster rsh: {}\n", Message(ErrnoStatus(why, "/bin/sh cannot be started here")));
  return why == ENOENT ? kExitNotFound : kExitNotExecutable;
}

}  // namespace muster::agent

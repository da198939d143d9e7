// SPDX-License-Identifier: Apache-2.0
// `muster rsh` to its own machine: the command runs here, as mpirun starts its daemon on its own host without a remote
// shell. The launcher's agent serves no remote shell, so nothing would answer.
#pragma once

#include <string>

namespace muster::agent {

// Whether `host` is this machine's name or address, or "localhost", and nothing listens on `port` at any of its
// addresses. A numeric loopback address does not count: several agents of one machine may each have one.
bool RunsHere(const std::string& host, int port);

// Becomes `sh -c COMMAND`. Returns the exit code only if it cannot be started, after a message. `no_stdin`: it reads
// /dev/null.
int RunHere(const std::string& command, bool no_stdin);

}  // namespace muster::agent

// SPDX-License-Identifier: Apache-2.0
// Flags that several small subcommands have, and the loop of those that serve.
#pragma once

#include <boost/asio/io_context.hpp>
#include <optional>
#include <string>

#include "agent/commands/arguments.h"
#include "base/status.h"
#include "net/credentials.h"

namespace muster::agent {

// --log-format and --log-level, or their variables, for subcommands that serve.
struct LogFlags {
  std::string format = "text";
  std::string level;
};
void AddLogFlags(Arguments& arguments, LogFlags* flags);
// Configures the process's log; an exit code means "end now" (an error was printed).
std::optional<int> ConfigureLog(const LogFlags& flags);

// --token-file, --tls-cert, --tls-key and --tls-ca, or their variables.
void AddCredentialFlags(Arguments& arguments, net::CredentialFiles* files);

// Of `muster status` and `muster top`, for the errors of StatusInquiry (agent/probe/status_inquiry.h).
int ExitCodeOfInquiry(const Status& status);

// Prints "listening on HOST:PORT" ("" is every address), runs the loop until SIGTERM or SIGINT; returns 128 + signal.
int ServeUntilSignal(boost::asio::io_context& loop, const std::string& host, int port);

}  // namespace muster::agent

// CLI11 for the small subcommands, with Muster's exit codes: 64 for a wrong flag, 0 for --help.
#pragma once

#include <CLI/CLI.hpp>
#include <boost/asio/io_context.hpp>
#include <optional>
#include <string>
#include <vector>

#include "net/credentials.h"

namespace muster::agent {

// Parses; an exit code means "end now" (help or an error was printed).
std::optional<int> ParseCommandLine(CLI::App& app, const std::vector<std::string>& arguments);

// --log-format and --log-level, or their variables, for subcommands that serve.
struct LogFlags {
  std::string format = "text";
  std::string level;
};
void AddLogFlags(CLI::App& app, LogFlags* flags);
// Configures the process's log; an exit code means "end now" (an error was printed).
std::optional<int> ConfigureLog(const LogFlags& flags);

// --token-file, --tls-cert, --tls-key and --tls-ca, or their variables.
void AddCredentialFlags(CLI::App& app, net::CredentialFiles* files);

// For an option's check(): "" for a number above 0, else the error. CLI11's own would name a range of 300 digits.
std::string WantPositive(const std::string& text);

// Prints "listening on HOST:PORT" ("" is every address), runs the loop until SIGTERM or SIGINT; returns 128 + signal.
int ServeUntilSignal(boost::asio::io_context& loop, const std::string& host, int port);

}  // namespace muster::agent
